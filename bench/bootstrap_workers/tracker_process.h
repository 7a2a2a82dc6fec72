// The tracker under test: any program that prints the DMLC_TRACKER_ENV block and exits when its job is done.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bench/bootstrap_workers/fiber.h"

namespace warren::bench {

class TrackerProcess {
 public:
  /// The kernel's data about a process that has exited.
  struct End {
    int exit_code = 0;  ///< or 128 + the signal that killed it
    long peak_rss_kib = 0;
  };

  /// Starts the tracker and reads the address that it prints. Throws std::runtime_error if it has not printed
  /// one by the deadline, or std::invalid_argument if the address is not an IPv4 literal.
  TrackerProcess(const std::vector<std::string>& command, std::chrono::steady_clock::time_point deadline);
  /// Kills the tracker if it is still running.
  ~TrackerProcess();
  TrackerProcess(const TrackerProcess&) = delete;
  TrackerProcess& operator=(const TrackerProcess&) = delete;

  const sockaddr_in& address() const { return address_; }
  /// The user and system processor time of all the tracker's threads so far.
  std::chrono::duration<double> cpu_time() const;
  /// Returns nullopt if the tracker is still running at the deadline.
  std::optional<End> WaitForEnd(std::chrono::steady_clock::time_point deadline);

 private:
  void ReadEnvironment(std::chrono::steady_clock::time_point deadline);
  End Reap();
  void Kill();

  pid_t pid_ = -1;
  Descriptor output_;  ///< the read end of the tracker's stdout
  sockaddr_in address_{};
};

}  // namespace warren::bench
