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
  /// What the kernel knows about a process that has ended.
  struct End {
    int exit_code = 0;  ///< 128 + the signal that killed it
    std::chrono::duration<double> cpu_time{};
    long peak_rss_kib = 0;
  };

  /// Starts `command` and reads where it listens. Throws std::runtime_error when it does not say so in time.
  TrackerProcess(const std::vector<std::string>& command, std::chrono::steady_clock::time_point deadline);
  /// Kills it if it still runs.
  ~TrackerProcess();
  TrackerProcess(const TrackerProcess&) = delete;
  TrackerProcess& operator=(const TrackerProcess&) = delete;

  const sockaddr_in& address() const { return address_; }
  /// Processor time, user and system, of all its threads so far.
  std::chrono::duration<double> cpu_time() const;
  /// Empty when it still runs at the deadline.
  std::optional<End> WaitForEnd(std::chrono::steady_clock::time_point deadline);
  End Kill();

 private:
  void ReadEnvironment(std::chrono::steady_clock::time_point deadline);
  End Reap();

  pid_t pid_ = -1;
  Descriptor output_;  ///< the read end of its stdout
  sockaddr_in address_{};
};

}  // namespace warren::bench
