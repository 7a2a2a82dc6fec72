// Workers that fail together, and with which of them it began.
//
// Where one worker of XGBoost 2.1 or later fails, the others fail, too, and sooner than it is gone, perhaps.
// So failures are gathered for a while, and then put in order: first the one that was gone first for the
// tracker, by leaving the job (as when Python leaves the communicator's context by an exception; the others
// may fail sooner than it has ended) or without a word; or else the one of whose error the tracker heard
// first. Pure: time is an argument.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "submit/process/process.h"

namespace warren::submit {

using TimePoint = std::chrono::steady_clock::time_point;

/// More than the 40 ms for which the kernel may hold back the last words of a process that has ended.
inline constexpr std::chrono::milliseconds kSettleTime{500};
/// How long is waited for the one with which it began while that still runs.
inline constexpr std::chrono::milliseconds kPatienceWithFirst{5000};

struct Failure {
  std::size_t index = 0;  ///< in the plan
  ExitStatus status;
  bool left = false;                   ///< the job at the tracker, before it failed
  std::optional<int> gone_after = {};  ///< so many others were gone for the tracker before it
  std::string story = {};              ///< what the tracker says of it; empty: it exited with a failure
};

/// What was gathered.
struct FailureCase {
  std::vector<Failure> failures;
  std::optional<std::size_t> first;  ///< of which the tracker heard first
  std::string story;                 ///< what it heard

  /// Puts that with which it began first. The order of the others stays where nothing is known of them.
  void PutInOrder();
};

class FailureArbiter {
 public:
  void Add(Failure failure, TimePoint now);
  /// The tracker has heard of this one's error first.
  void Accuse(std::optional<std::size_t> index, const std::string& story, TimePoint now);

  /// Something was gathered that nobody has taken.
  bool pending() const { return deadline_.has_value(); }
  /// Of which the tracker heard first.
  std::optional<std::size_t> first() const { return case_.first; }
  /// When the case is to be looked at, if there is one.
  std::optional<TimePoint> deadline() const { return deadline_; }
  /// At the deadline: whether the case is ripe. `first_runs`: first() has not ended. Then it has its own last
  /// words to say, and an exit code, and gets some more time.
  bool IsRipe(bool first_runs);
  /// Hands over what was gathered, and forgets it.
  FailureCase Take();
  void Clear() { *this = {}; }

 private:
  void WaitFrom(TimePoint now);

  FailureCase case_;
  std::optional<TimePoint> deadline_;
  TimePoint last_deadline_;  ///< also when the first still runs
};

}  // namespace warren::submit
