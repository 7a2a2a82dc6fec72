// Collects the failures of workers that fail together, and determines which worker failed first.
//
// If one worker of XGBoost 2.1 or later fails, the others fail too, possibly before it has exited. So
// failures are collected for a while and then put in order. The first is the worker that was gone first
// according to the tracker, whether it disappeared or left the job (as when an exception makes Python leave
// the communicator's context). If the tracker has not seen any worker go, the first is the worker whose error
// was reported to the tracker first. Does no I/O; the time is an argument.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "submit/process/process.h"

namespace warren::submit {

using TimePoint = std::chrono::steady_clock::time_point;

/// The time for which failures are collected after the first one, and for which the last messages of a worker
/// that succeeded may be in transit. Longer than the 40 ms for which the kernel may delay the last bytes from
/// a process that has ended.
inline constexpr std::chrono::milliseconds kSettleTime{500};
/// The maximum time to wait for the worker whose error was reported first, if it is still running.
inline constexpr std::chrono::milliseconds kPatienceWithFirst{5000};

struct Failure {
  std::size_t index = 0;  ///< the process's index in the plan
  ExitStatus status;
  bool left = false;                   ///< whether the process left the job at the tracker before it failed
  std::optional<int> gone_after = {};  ///< see JobView::Task::gone_after
  /// The error reported to the tracker, if the process exited with code 0 in spite of it; otherwise empty.
  std::string story = {};
};

/// The failures collected so far.
struct FailureCase {
  std::vector<Failure> failures;
  std::optional<std::size_t> first;  ///< the worker whose error was reported to the tracker first, if known
  std::string story;                 ///< the reported error

  /// Sorts the failures, the earliest first: by `gone_after`, with unknown values last; among equals, `first`
  /// precedes the others, which keep their order.
  void PutInOrder();
};

class FailureArbiter {
 public:
  void Add(Failure failure, TimePoint now);
  /// Records the worker whose error was reported to the tracker first (nullopt: unknown), and the error.
  void Accuse(std::optional<std::size_t> index, const std::string& story, TimePoint now);

  /// Whether any failures or reports have been collected but not yet taken.
  bool pending() const { return deadline_.has_value(); }
  /// The worker whose error was reported to the tracker first; nullopt if none was, or its worker is unknown.
  std::optional<std::size_t> first() const { return case_.first; }
  /// When to call IsRipe, if anything is pending.
  std::optional<TimePoint> deadline() const { return deadline_; }
  /// Returns whether the collection is complete; call at the deadline. `first_runs`: whether first() has not
  /// exited yet. In that case the deadline is extended, up to kPatienceWithFirst, to wait for that worker's
  /// last output and exit code.
  bool IsRipe(bool first_runs);
  /// Returns the collected failures and starts a new collection.
  FailureCase Take();
  void Clear() { *this = {}; }

 private:
  void WaitFrom(TimePoint now);

  FailureCase case_;
  std::optional<TimePoint> deadline_;
  TimePoint last_deadline_;  ///< the deadline is not extended beyond this
};

}  // namespace warren::submit
