// One simulated rabit worker: the messages, in the order and in the pieces in which rabit 0.1 and XGBoost 1.7
// send them, over real sockets, without TCP_NODELAY as there.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/membership.h"
#include "bench/bootstrap_workers/task.h"
#include "wire/classic.h"

namespace warren::bench {

struct WorkerOptions {
  sockaddr_in tracker{};
  /// Where the first worker lives, in host byte order; the next ones follow it.
  std::uint32_t first_address = 0x7f010000;
  /// Each message in one send, instead of field by field as rabit does.
  bool whole_messages = false;
};

class Worker {
 public:
  /// Each worker lives at a loopback address of its own, so that neither its tracker connection nor its
  /// listening port competes with another worker's for a port number.
  Worker(EventLoop& loop, int task, const WorkerOptions& options);

  /// From the first connection to the tracker until all links stand. Throws what went wrong.
  Task<void> Join(Membership& membership);
  /// Tells the tracker that this worker has finished.
  Task<void> ShutDown(Membership& membership);

  /// Connections to peers that failed and were tried again with the tracker's help.
  int num_failed_connects() const { return num_failed_connects_; }

 private:
  struct Link {
    Descriptor socket;
    int rank;
  };

  Task<Descriptor> CallTracker(wire::classic::TrackerStream& ear, wire::classic::Hello hello, Stage& stage);
  Task<bool> ConnectTo(wire::classic::Endpoint peer);
  Task<void> AcceptFrom(const Descriptor& listener);
  /// Both ends of a new link say their rank; returns the peer's.
  Task<int> ExchangeRanks(const Descriptor& link);
  void SayHello(const Descriptor& tracker, const wire::classic::Hello& hello);
  void Say(const Descriptor& tracker, std::string_view message);

  Fiber fiber_;
  const WorkerOptions* options_;
  std::string task_id_;
  sockaddr_in address_;
  int rank_ = -1;
  std::vector<Link> links_;
  int num_failed_connects_ = 0;
};

}  // namespace warren::bench
