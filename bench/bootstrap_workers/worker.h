// A simulated worker: what both dialects have in common.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/membership.h"
#include "bench/bootstrap_workers/task.h"
#include "wire/dialect.h"

namespace warren::bench {

/// The size of an integer in both protocols.
inline constexpr std::size_t kIntBytes = sizeof(std::int32_t);
/// What a worker reads from the tracker at once.
inline constexpr std::size_t kTrackerReadBytes = 1024;

struct WorkerOptions {
  sockaddr_in tracker{};
  /// Where the first worker lives, in host byte order; the next ones follow it.
  std::uint32_t first_address = 0x7f010000;
  /// Each message in one send, instead of piece by piece as the real ones do.
  bool whole_messages = false;
  wire::Dialect dialect = wire::Dialect::kClassic;
};

/// Each worker lives at a loopback address of its own, so that neither its tracker connection nor its
/// listening port competes with another worker's for a port number.
class Worker {
 public:
  Worker() = default;
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// From the first connection to the tracker until all links stand. Throws what went wrong.
  virtual Task<void> Join(Membership& membership) = 0;
  /// Tells the tracker that this worker has finished.
  virtual Task<void> ShutDown(Membership& membership) = 0;

  /// Connections to peers that failed and were tried again with the tracker's help.
  virtual int num_failed_connects() const { return 0; }
};

/// Where worker `task` lives, at any port.
sockaddr_in AddressOfWorker(const WorkerOptions& options, int task);
/// A link is closed by a reset: thousands of them would else stay in TIME_WAIT and burden the next run.
void CloseByReset(const Descriptor& link);

}  // namespace warren::bench
