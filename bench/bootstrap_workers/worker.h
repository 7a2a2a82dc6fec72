// A simulated worker: the part common to both dialects.
#pragma once

#include <fmt/format.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/membership.h"
#include "bench/bootstrap_workers/task.h"
#include "wire/classic.h"
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
  Worker(EventLoop& loop, int task, const WorkerOptions& options);
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Connects to the tracker and establishes all links. Throws on any error.
  virtual Task<void> Join(Membership& membership) = 0;
  /// Reports to the tracker that this worker has finished.
  virtual Task<void> ShutDown(Membership& membership) = 0;

 protected:
  /// Connects to the tracker, and exchanges magics with it.
  template <typename Stream>
  Task<Descriptor> CallTracker(Stream& stream, Stage& stage);
  void SendRank(const Descriptor& link, std::int32_t rank) const;
  Task<int> ReceiveRank(const Descriptor& link);

  Fiber fiber_;
  const WorkerOptions* options_;
  std::string task_id_;
  sockaddr_in address_;
};

/// Sets the link to be closed by a reset: otherwise thousands of links would stay in TIME_WAIT and burden the
/// next run.
void CloseByReset(const Descriptor& link);

template <typename Stream>
Task<Descriptor> Worker::CallTracker(Stream& stream, Stage& stage) {
  stage = Stage::kConnects;
  Descriptor tracker = co_await fiber_.Connect(options_->tracker, &address_);
  stage = Stage::kGreets;
  fiber_.Send(tracker, wire::classic::EncodeMagic());
  std::optional<std::int32_t> magic;
  while (!(magic = stream.NextMagic())) stream.Append(co_await fiber_.Receive(tracker, kIntBytes));
  if (*magic != wire::kMagic) throw std::runtime_error(fmt::format("the tracker's magic is {:#x}", *magic));
  co_return tracker;
}

}  // namespace warren::bench
