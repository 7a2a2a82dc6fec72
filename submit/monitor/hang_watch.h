// The detection of workers that are stopped, hang, or hold up the others. It uses what the kernel of each
// host says (process/sample.h), what each engine reports (wire/report.h), what each worker prints, and how
// long none of these has been heard. Pure.
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

  // From samples, if any came.
  std::optional<TimePoint> sampled;  ///< when the last came, or could not come for another reason
  char state = '?';
  TimePoint state_since;  ///< samples say this state
  TimePoint busy;         ///< when it was seen to use the processor last
  std::optional<TimePoint> sampled_first;
  std::optional<double>
      cores;  ///< processor cores used between the last two samples; nullopt: there was one sample
  TimePoint cores_since;  ///< when the first of these two came

  std::optional<TimePoint> printed;  ///< when it last wrote output, or printed by way of the tracker

  // From reports, if any came.
  std::optional<TimePoint> reported;
  std::chrono::steady_clock::duration report_gap{0};  ///< the longest between two; 0: there was one
  std::uint64_t call = 0;                             ///< the number of the call it is in, or was in last
  std::string call_name;
  bool inside = false;
  TimePoint call_since;  ///< it is in that call, or has left it
};

/// Reported once for as long as it lasts.
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
  TimePoint since = {};      ///< it lasts
};

class HangWatch {
 public:
  /// `timeout`: so long a worker may show no life. Zero: nothing is ever found. `sample_interval`: of
  /// samples, by which a stop is seen late.
  HangWatch(std::chrono::milliseconds timeout, std::chrono::milliseconds sample_interval);

  /// What has begun, and what has ended, since the last look. `workers[i]`: nullopt for one that does not
  /// run. `round_ended`: when the job finished its last round.
  ///
  /// Output is progress: a worker that prints is neither idle, silent nor late. A round that ended while
  /// workers are said to wait shows that this is old news. When workers that held up others, or were all
  /// idle, go on by themselves, waits of that length are usual for the job, and only one of twice that length
  /// is reported next.
  std::vector<Finding> Look(const std::vector<std::optional<Signs>>& workers,
                            std::optional<TimePoint> round_ended, TimePoint now);
  /// For each worker, what the last look found wrong with it, in a few words; empty: nothing.
  const std::vector<std::string>& troubles() const { return troubles_; }

 private:
  /// Ranks that are in a call, by the number of the call.
  struct Waiting {
    std::uint64_t call = 0;
    const Signs* first = nullptr;  ///< the one that has waited for longest in this call or a later one
  };
  using Duration = std::chrono::steady_clock::duration;
  struct Found {
    Finding::Kind kind;
    TimePoint since;
  };
  std::optional<Finding> FindIn(const Signs& signs, TimePoint now) const;
  std::vector<Waiting> WhoWaits(const std::vector<std::optional<Signs>>& workers,
                                std::optional<TimePoint> round_ended) const;
  std::optional<Finding> FindLate(const Signs& signs, const std::vector<Waiting>& waiting,
                                  TimePoint now) const;
  std::optional<Finding> FindIdle(const std::vector<std::optional<Signs>>& workers,
                                  std::optional<TimePoint> round_ended, TimePoint now) const;
  bool HasPrinted(const Signs& signs, Duration within, TimePoint now) const;
  /// A wait that was reported has ended by itself after so long: longer ones alone are reported from here on.
  /// Returns the words that say so.
  std::string LearnFrom(Duration lasted);

  bool is_on_;
  std::chrono::milliseconds silent_after_;  ///< what samples say: so long at least, as they come seldom
  std::chrono::milliseconds timeout_;       ///< for what is known at once
  std::chrono::milliseconds seen_after_;  ///< a state that samples say for so long has lasted for the timeout
  Duration late_after_;                   ///< for kHoldsUp; both grow by LearnFrom
  Duration idle_after_;                   ///< for kAllIdle
  std::vector<std::optional<Found>> found_;
  std::vector<std::string> troubles_;
  std::optional<TimePoint> all_idle_since_;
};

}  // namespace warren::submit
