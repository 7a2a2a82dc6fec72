// A thin layer around a state machine (gang_controller.h, ssh_controller.h, agent_sessions.h,
// kubernetes/controller.h). It carries out the machine's actions in order and calls the machine at its
// deadlines. If an action causes further events for the machine, the loop that is already running carries out
// the resulting actions after those pending, so actions are never nested.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <utility>
#include <variant>

#include "submit/output/deadline_timer.h"

namespace warren::submit {

template <typename Machine, typename Action>
class ActionLoop {
 public:
  /// `perform` carries out one action, of any type in the variant `Action`. `machine` and `io` must outlive
  /// this object.
  template <typename Perform>
  ActionLoop(boost::asio::io_context& io, Machine& machine, Perform perform)
      : io_(io),
        machine_(machine),
        perform_([perform](const Action& action) { std::visit(perform, action); }),
        timer_(io) {}

  /// Carries out the pending actions and sets the timer. Call after each event passed to the machine. Does
  /// nothing if called by an action, since the active call carries out the new actions, too.
  void Run() {
    if (std::exchange(running_, true)) return;
    for (auto actions = machine_.TakeActions(); !actions.empty(); actions = machine_.TakeActions()) {
      for (const Action& action : actions) perform_(action);
    }
    running_ = false;
    timer_.Set(machine_.NextDeadline(), [this] {
      machine_.Tick(std::chrono::steady_clock::now());
      Run();
    });
  }

  /// Posts Run to the io_context unless Run is active. For callers that must not be called back
  /// synchronously.
  void RunSoon() {
    if (!running_) boost::asio::post(io_, [this] { Run(); });
  }

 private:
  boost::asio::io_context& io_;
  Machine& machine_;
  std::function<void(const Action&)> perform_;
  DeadlineTimer timer_;
  bool running_ = false;
};

}  // namespace warren::submit
