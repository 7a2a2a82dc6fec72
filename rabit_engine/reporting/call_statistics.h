// Statistics for reports: the traffic of this process's collectives, its current call, and its long calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rabit_engine/call/call_tag.h"
#include "wire/report.h"

namespace warren::reporting {

/// Calls longer than this are reported individually, so that a comparison of the ranks shows which one was
/// late.
inline constexpr std::chrono::milliseconds kLongCall{1};

/// Thread-safe. Receives the current time in its arguments.
class CallStatistics {
 public:
  using Clock = std::chrono::steady_clock;

  /// Records the beginning of a call on the world communicator. Its number is the tag's sequence.
  void Enter(const CallTag& tag, Clock::time_point now);
  /// Records the end, successful or not, of the call that was entered.
  void Leave(Clock::time_point now);
  /// Counts a successful call on any communicator. `algorithm` must stay valid forever.
  void Count(Collective collective, std::string_view algorithm, std::uint64_t bytes,
             std::chrono::nanoseconds time);

  /// Records the beginning of a new world communicator, whose calls are numbered from the start again. Drops
  /// waits that have not been taken.
  void BeginWorld();

  struct Snapshot {
    std::optional<wire::ReportedCall> call;
    std::vector<wire::ReportedTraffic> traffic;
    std::vector<wire::ReportedWait> waits;
    /// Number of waits not in `waits`: only the longest wire::kMaxReportedWaits are kept.
    std::uint64_t waits_dropped = 0;
    std::uint64_t world = 0;  ///< counts the BeginWorld calls before this snapshot
  };
  /// Returns the current counters, with the waits since the previous Take.
  Snapshot Take(Clock::time_point now);
  /// Takes back a snapshot that could not be sent: the next Take returns its waits again, unless the world
  /// has changed.
  void PutBack(Snapshot snapshot);

 private:
  struct Sum {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds time{0};
  };
  void KeepWait(const wire::ReportedWait& wait);

  std::mutex mutex_;
  std::map<std::pair<Collective, std::string_view>, Sum> sums_;
  std::optional<CallTag> tag_;  ///< the current call, or the last one
  bool inside_ = false;
  Clock::time_point since_;  ///< when the current call began, or the last one ended
  std::vector<wire::ReportedWait> waits_;
  std::uint64_t waits_dropped_ = 0;
  std::uint64_t world_ = 0;
};

}  // namespace warren::reporting
