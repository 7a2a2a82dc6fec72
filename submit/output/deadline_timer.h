// A timer for a state machine that reports its next deadline repeatedly. The timer is restarted only if the
// deadline changes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <utility>

namespace warren::submit {

class DeadlineTimer {
 public:
  using TimePoint = boost::asio::steady_timer::time_point;

  explicit DeadlineTimer(boost::asio::io_context& io) : timer_(io) {}

  /// Calls `due` from the io_context at the deadline, unless another call changes the deadline before then.
  /// If the deadline is the same as before, does nothing, and the earlier `due` stays. nullopt stops the
  /// timer.
  void Set(std::optional<TimePoint> deadline, std::function<void()> due) {
    if (deadline == deadline_) return;
    deadline_ = deadline;
    timer_.cancel();
    if (!deadline) return;
    timer_.expires_at(*deadline);
    timer_.async_wait([this, due = std::move(due)](const boost::system::error_code& error) {
      if (error) return;
      deadline_.reset();
      due();
    });
  }

 private:
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> deadline_;  ///< nullopt if the timer is not set
};

}  // namespace warren::submit
