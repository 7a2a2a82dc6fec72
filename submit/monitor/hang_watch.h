// Finds workers that have stopped, hang or hold the others up, by what is known of each: what its host's
// kernel says (process/sample.h), what its engine says (wire/report.h), and that nothing is said any more.
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracker/action.h"

namespace warren::submit {

using tracker::TimePoint;

/// What is known of a worker that runs.
struct Signs {
  std::string name;  ///< "worker 3 (rank 2, host n1, pid 4242)"
  std::string host;  ///< empty: not known
  TimePoint since;   ///< it runs

  // Of samples; none may have come.
  std::optional<TimePoint> sampled;  ///< when the last came, or could not come for another reason
  char state = '?';
  TimePoint state_since;  ///< samples say this state
  TimePoint busy;         ///< when it was seen to use the processor last
  std::optional<TimePoint> sampled_first;

  // Of reports; none may have come.
  std::optional<TimePoint> reported;
  std::chrono::steady_clock::duration report_gap{0};  ///< the longest between two; 0: there was one
  std::uint64_t call = 0;                             ///< the number of the call it is in, or was in last
  std::string call_name;
  bool inside = false;
  TimePoint call_since;  ///< it is in that call, or has left it
};

/// Said once for as long as it lasts.
struct Finding {
  enum class Kind {
    kStopped,  ///< by a signal or a debugger
    kWaits,    ///< for a disk or a network file system
    kSilent,   ///< neither its host nor its engine is heard of
    kHoldsUp,  ///< others wait in a collective call that it does not make
    kAllIdle,  ///< nobody uses a processor; `worker` did so last
    kGoesOn    ///< what was found before is over
  };
  Kind kind = Kind::kStopped;
  std::size_t worker = 0;    ///< which of those looked at
  std::string text;          ///< a sentence for people
  std::string trouble = {};  ///< the same in a few words, without the name
};

class HangWatch {
 public:
  /// `timeout`: so long a worker may show no life. Zero: nothing is ever found. `sample_interval`: of
  /// samples, by which a stop is seen late.
  HangWatch(std::chrono::milliseconds timeout, std::chrono::milliseconds sample_interval);

  /// `workers[i]`: nothing for one that does not run. What has begun, and what has ended, since the last
  /// look.
  std::vector<Finding> Look(const std::vector<std::optional<Signs>>& workers, TimePoint now);
  /// Of each, as of the last look: what is wrong with it in a few words; empty: nothing is known to be.
  const std::vector<std::string>& troubles() const { return troubles_; }

 private:
  /// Ranks that have been in a call for long, by the number of the call.
  struct Waiting {
    std::uint64_t call = 0;
    const Signs* first = nullptr;  ///< of those in this call or a later one, who has waited for longest
  };
  std::optional<Finding> FindIn(const Signs& signs, TimePoint now) const;
  std::vector<Waiting> WhoWaits(const std::vector<std::optional<Signs>>& workers, TimePoint now) const;
  std::optional<Finding> FindLate(const Signs& signs, const std::vector<Waiting>& waiting,
                                  TimePoint now) const;
  std::optional<Finding> FindIdle(const std::vector<std::optional<Signs>>& workers, TimePoint now) const;

  bool is_on_;
  std::chrono::milliseconds silent_after_;  ///< what samples say: so long at least, as they come seldom
  std::chrono::milliseconds timeout_;       ///< of what is known at once
  std::chrono::milliseconds seen_after_;  ///< a state that samples say for so long has lasted for the timeout
  std::vector<std::optional<Finding::Kind>> found_;
  std::vector<std::string> troubles_;
  bool all_idle_ = false;
};

}  // namespace warren::submit
