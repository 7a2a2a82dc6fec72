// What has gone through the collectives of this process, and which one it is in: counters, for reports.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rabit_engine/transport/call_tag.h"
#include "wire/report.h"

namespace warren::reporting {

/// Calls that took longer are reported one by one: who came late to them is found by comparing ranks.
inline constexpr std::chrono::milliseconds kLongCall{1};

/// Thread safe. Time is an argument.
class CallStatistics {
 public:
  using Clock = std::chrono::steady_clock;

  /// A call of the world's communicator begins; its number is the tag's sequence.
  void Enter(const CallTag& tag, Clock::time_point now);
  /// One that was entered has ended, well or not.
  void Leave(Clock::time_point now);
  /// A call of any communicator has ended well. `algorithm` stays valid for ever.
  void Count(Collective collective, std::string_view algorithm, std::uint64_t bytes,
             std::chrono::nanoseconds time);

  /// Another communicator is the world's: it counts its calls anew.
  void BeginWorld();

  struct Snapshot {
    std::optional<wire::ReportedCall> call;
    std::vector<wire::ReportedTraffic> traffic;
    std::vector<wire::ReportedWait> waits;
    std::uint64_t waits_dropped = 0;  ///< beside them: only so many are kept, the longest
    std::uint64_t world = 0;          ///< whose calls these are
  };
  /// The waits are those since the last one was taken.
  Snapshot Take(Clock::time_point now);
  /// It has reached nobody: its waits, if the world is the same, are taken again with the next.
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
  std::optional<CallTag> tag_;  ///< of the current call, or the last
  bool inside_ = false;
  Clock::time_point since_;  ///< the beginning of the call, or its end
  std::vector<wire::ReportedWait> waits_;
  std::uint64_t waits_dropped_ = 0;
  std::uint64_t world_ = 0;
};

}  // namespace warren::reporting
