// Records losses of processes, and determines which hosts get no more processes for a while because of them.
// Does no I/O.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "tracker/action.h"

namespace warren::submit {

using tracker::TimePoint;

/// A host that loses this many processes within kLossMemory is left out, until kLossMemory has passed without
/// another loss.
inline constexpr std::size_t kMostLosses = 3;
inline constexpr std::chrono::minutes kLossMemory{10};
/// The pause before the next use of a host that could not be reached or whose machine is about to be
/// reclaimed.
inline constexpr std::chrono::seconds kHostRest{10};

class HostLosses {
 public:
  /// Records that a process was lost on the host. `rests`: whether the host must not be used for kHostRest.
  /// Returns true if the host is left out from now on and was not left out before.
  bool Add(const std::string& host, bool rests, TimePoint now);
  /// Whether the host is left out because of kMostLosses losses.
  bool IsLeftOut(const std::string& host, TimePoint now) const;
  /// The time at which the host may be used again; nullopt if it may be used now.
  std::optional<TimePoint> AvoidedUntil(const std::string& host, TimePoint now) const;
  void Clear() { hosts_.clear(); }

 private:
  struct Record {
    std::deque<TimePoint> losses;
    std::optional<TimePoint> rests_until;
    std::optional<TimePoint> left_out_until;
  };
  std::map<std::string, Record> hosts_;
};

/// The reason why a host is left out: "n1 has lost 3 workers within 10 minutes".
std::string LossesStory(const std::string& host);

}  // namespace warren::submit
