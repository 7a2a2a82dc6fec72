// Detects workers that are stopped, hang, or hold up the others. The evidence consists of samples of the
// processes (process/sample.h), the reports of each engine (wire/report.h), the output of each worker, and
// the age of this information. Does no I/O.
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

/// The known state of a running worker.
struct Signs {
  std::string name;  ///< "worker 3 (rank 2, host n1, pid 4242)"
  std::string host;  ///< empty: unknown
  TimePoint since;   ///< when it started

  // From samples, if there are any.
  /// The arrival time of the latest sample, plus any time since then in which dmlc-submit did not read
  /// samples.
  std::optional<TimePoint> sampled;
  char state = '?';
  TimePoint state_since;  ///< when samples first showed this state
  TimePoint busy;         ///< when it was last seen using a processor; at first, the time of the first sample
  std::optional<TimePoint> sampled_first;
  /// Processor cores used between the last two samples; nullopt if there were fewer than two.
  std::optional<double> cores;
  TimePoint cores_since;  ///< when the first of those two samples arrived

  std::optional<TimePoint> printed;  ///< when it last wrote output, directly or through the tracker

  // From reports, if there are any.
  std::optional<TimePoint> reported;
  /// The longest time between two reports that has occurred or is to be expected; 0 if unknown.
  std::chrono::steady_clock::duration report_gap{0};
  std::uint64_t call = 0;  ///< the number of its current or last call; 0 if there was none
  std::string call_name;
  bool inside = false;
  TimePoint call_since;  ///< when it entered the call or, if not `inside`, left it
};

/// A change of a worker's condition; reported once.
struct Finding {
  enum class Kind {
    kStopped,  ///< stopped by a signal or a debugger
    kWaits,    ///< waits for a disk or a network file system
    kSilent,   ///< its host, or the engine of an idle worker, has gone silent
    kHoldsUp,  ///< other workers wait in a collective call that it has not entered
    kAllIdle,  ///< no worker uses a processor; `worker` was the last one that did
    kGoesOn    ///< an earlier finding no longer holds
  };
  Kind kind = Kind::kStopped;
  std::size_t worker = 0;    ///< index in the workers passed to Look
  std::string text;          ///< a sentence for the user
  std::string trouble = {};  ///< `text` in a few words, without the name; may be empty
  TimePoint since = {};      ///< when the condition began; set for kHoldsUp and kAllIdle
};

class HangWatch {
 public:
  /// `timeout`: how long a worker may show no sign of life; if it is zero, nothing is ever found.
  /// `sample_interval`: the time between samples. The state of a process may become known that much later.
  HangWatch(std::chrono::milliseconds timeout, std::chrono::milliseconds sample_interval);

  /// Returns the conditions that have begun or ended since the last call. `workers[i]` is nullopt if the
  /// worker is not running. `round_ended`: when the job finished its latest round.
  ///
  /// Output is progress: a worker that prints is neither idle nor late, and its engine does not count as
  /// silent. If a round ends well after workers began to wait, their wait is over. If workers that held up
  /// others, or were all idle, continue by themselves, such waits are considered usual for the job. The next
  /// one is then reported only at twice the length, or at ten times the timeout if that is shorter.
  std::vector<Finding> Look(const std::vector<std::optional<Signs>>& workers,
                            std::optional<TimePoint> round_ended, TimePoint now);
  /// For each worker, the problem found by the last Look, in a few words, or an empty string.
  const std::vector<std::string>& troubles() const { return troubles_; }

 private:
  /// A worker that is in a call.
  struct Waiting {
    std::uint64_t call = 0;
    const Signs* first = nullptr;  ///< the worker that has waited longest in this call or a later one
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
  /// Called when a reported wait of length `lasted` has ended by itself. From then on, waits are reported
  /// only if they last twice as long, or about ten times the timeout if that is shorter. Returns text about
  /// this for the user.
  std::string LearnFrom(Duration lasted);

  bool is_on_;
  std::chrono::milliseconds silent_after_;  ///< limit on the age of samples, which are infrequent
  std::chrono::milliseconds timeout_;       ///< limit on the age of reports, which are frequent
  std::chrono::milliseconds seen_after_;    ///< limit on the time since a state was first sampled
  Duration late_after_;                     ///< limit for kHoldsUp; raised by LearnFrom
  Duration idle_after_;                     ///< limit for kAllIdle; raised by LearnFrom
  std::vector<std::optional<Found>> found_;
  std::vector<std::string> troubles_;
  std::optional<TimePoint> all_idle_since_;
};

}  // namespace warren::submit
