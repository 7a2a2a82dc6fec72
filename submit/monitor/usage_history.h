// The processor cores and the memory that each process has used over time, for the page. All processes share
// one list of times. Once the list is full, every second time is dropped and the interval doubles, so that a
// job that runs for days needs no more memory than a job that runs for minutes. Does no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace warren::submit {

/// The cores and the memory that one process uses.
struct Usage {
  double cores = 0;
  std::uint64_t resident_bytes = 0;
};

class UsageHistory {
 public:
  /// `processes`: the number of processes in the plan. The more there are, the fewer times are kept: at most
  /// 240 for up to 250 processes, 60 for 1,000, and 30 for 2,000 or more.
  explicit UsageHistory(std::size_t processes);

  /// Whether the interval has passed since the latest time. `seconds`: the current time since the job began.
  bool IsDue(double seconds) const;
  /// Adds the usage of each process at this time, in seconds since the job began.
  void Add(double seconds, const std::vector<Usage>& usage);

  /// Returns {"seconds": [0, 1, ...], "cores": [[0.9, ...], ...], "mib": [[120, ...], ...]}, with one list of
  /// cores and of MiB per process.
  std::string Json() const;

 private:
  struct Point {
    double seconds;
    std::vector<Usage> usage;
  };

  const std::size_t processes_;
  const std::size_t most_points_;
  double interval_ = 1;
  std::vector<Point> points_;
};

}  // namespace warren::submit
