// A simulated worker: the part common to both dialects.
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
/// The maximum number of bytes that a worker reads from the tracker at a time.
inline constexpr std::size_t kTrackerReadBytes = 1024;

struct WorkerOptions {
  sockaddr_in tracker{};
  /// The address of the first worker, in host byte order; the other workers have the addresses after it.
  std::uint32_t first_address = 0x7f010000;
  /// Sends each message as a whole, not in pieces as real workers do.
  bool whole_messages = false;
  wire::Dialect dialect = wire::Dialect::kClassic;
};

/// Each worker has a separate loopback address, so that neither its tracker connection nor its listening port
/// competes with another worker's for a port number.
class Worker {
 public:
  Worker() = default;
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Connects to the tracker and establishes all links. Throws on any error.
  virtual Task<void> Join(Membership& membership) = 0;
  /// Reports to the tracker that this worker has finished.
  virtual Task<void> ShutDown(Membership& membership) = 0;

  /// The number of connections to peers that failed and were retried with the tracker's help.
  virtual int num_failed_connects() const { return 0; }
};

/// The address of worker `task`, with port 0.
sockaddr_in AddressOfWorker(const WorkerOptions& options, int task);
/// Sets the link to be closed by a reset: otherwise thousands of links would stay in TIME_WAIT and burden the
/// next run.
void CloseByReset(const Descriptor& link);

}  // namespace warren::bench
