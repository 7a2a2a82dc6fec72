// A simulated rabit worker. It sends the same messages as rabit 0.1 and XGBoost 1.7, in the same order and in
// the same pieces (unless WorkerOptions::whole_messages is set), over real sockets without TCP_NODELAY.
#pragma once

#include <string_view>
#include <vector>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/membership.h"
#include "bench/bootstrap_workers/task.h"
#include "bench/bootstrap_workers/worker.h"
#include "wire/classic.h"

namespace warren::bench {

class ClassicWorker final : public Worker {
 public:
  using Worker::Worker;

  Task<void> Join(Membership& membership) override;
  Task<void> ShutDown(Membership& membership) override;

 private:
  struct Link {
    Descriptor socket;
    int rank;
  };

  Task<bool> ConnectTo(wire::classic::Endpoint peer);
  Task<void> AcceptFrom(const Descriptor& listener);
  /// Sends this worker's rank over a new link; returns the peer's rank.
  Task<int> ExchangeRanks(const Descriptor& link);
  void SayHello(const Descriptor& tracker, const wire::classic::Hello& hello);
  void Say(const Descriptor& tracker, std::string_view message);

  int rank_ = -1;
  std::vector<Link> links_;
};

}  // namespace warren::bench
