// One simulated worker of XGBoost 2.1 or later: its messages to the tracker, in the order and in the pieces
// in which it sends them, and the ring with which its own communication begins. What follows there is no
// concern of a tracker.
#pragma once

#include <string>
#include <string_view>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/worker.h"
#include "wire/collective.h"

namespace warren::bench {

class CollectiveWorker final : public Worker {
 public:
  CollectiveWorker(EventLoop& loop, int task, const WorkerOptions& options);

  Task<void> Join(Membership& membership) override;
  Task<void> ShutDown(Membership& membership) override;

 private:
  Task<Descriptor> CallTracker(wire::collective::TrackerStream& stream, wire::collective::Hello hello,
                               Stage& stage);
  /// Over each new link the one that connects says its rank.
  Task<void> MakeRing(Membership& membership, wire::collective::Next next, const Descriptor& listener);
  void Say(const Descriptor& tracker, std::string_view message);

  Fiber fiber_;
  const WorkerOptions* options_;
  std::string task_id_;
  sockaddr_in address_;
  sockaddr_in error_address_;
  Descriptor error_listener_;
  Descriptor next_;
  Descriptor prev_;
};

}  // namespace warren::bench
