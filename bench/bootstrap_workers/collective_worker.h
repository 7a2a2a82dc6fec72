// A simulated worker of XGBoost 2.1 or later. It sends the tracker the messages of a real worker, in the same
// order and in the same pieces (unless WorkerOptions::whole_messages is set), and makes the ring with which
// XGBoost's communication begins. After that, a worker contacts the tracker only to shut down.
#pragma once

#include <string_view>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/worker.h"
#include "wire/collective.h"

namespace warren::bench {

class CollectiveWorker final : public Worker {
 public:
  using Worker::Worker;

  Task<void> Join(Membership& membership) override;
  Task<void> ShutDown(Membership& membership) override;

 private:
  /// Connects to the next rank, sends it this worker's rank, and accepts the connection of the previous rank.
  Task<void> MakeRing(Membership& membership, wire::collective::Next next, const Descriptor& listener);
  void Say(const Descriptor& tracker, std::string_view message);

  Descriptor error_listener_;
  Descriptor next_;
  Descriptor prev_;
};

}  // namespace warren::bench
