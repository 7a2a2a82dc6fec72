// The trace of a job. Converts the events that the job's monitor receives to spans of the job, of its
// attempts (starts of the whole job), of the generations of an elastic job, of the start and the joining of
// the workers, and of the rounds of training. A state machine without I/O: the time is an argument, and IDs
// come from a function.
//
//   the job
//     attempt          from the start of all processes to the end of the last one
//       start          until all processes are running, or all workers are linked
//       join           from the first worker that waits to be linked, or from a loss, until all are linked
//       round          if the job is not elastic
//       generation     until the loss of a worker or the next generation
//         round
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "submit/process/process.h"
#include "submit/trace/span.h"
#include "tracker/action.h"

namespace warren::submit {

using tracker::TimePoint;

/// A process of the job, as described in spans.
struct TracedProcess {
  std::size_t index = 0;  ///< in the job's plan
  std::string name;       ///< "worker 3"
  std::optional<int> rank = {};
  std::string host = {};
};

class JobTrace {
 public:
  using Metrics = std::vector<std::pair<std::string, double>>;
  /// Returns the ID of a new span: 16 hexadecimal digits.
  using NewId = std::function<std::string()>;

  /// Begins the spans of the job and of its first attempt. `job`: the job's name. `attributes`: those of the
  /// job's span. `now_ns`: the same time as `now`, in nanoseconds since the Unix epoch.
  JobTrace(TraceContext context, const std::string& job, Attributes attributes, TimePoint now,
           std::int64_t now_ns, NewId new_id);

  const TraceContext& context() const { return context_; }
  /// The traceparent for the processes of the current attempt or, between two attempts, of the next attempt.
  std::string Traceparent() const;

  // Events. `now` must never decrease.
  /// The process with this index is running. `processes`: the number of all processes. May be called
  /// repeatedly for the same process.
  void Runs(std::size_t index, std::size_t processes, TimePoint now);
  void Exited(const TracedProcess& process, const ExitStatus& status, TimePoint now);
  /// All processes are being stopped. Processes that end from now on do not count as lost.
  void StopBegins() { stopping_ = true; }
  void Joined(int joined, int expected, TimePoint now);
  void Linked(TimePoint now);
  void GenerationBegan(int number, int size, const std::string& how, TimePoint now);
  /// `rounds`: the total number of rounds; 0: unknown. `begins`: whether this is a new round, even if the
  /// previous round has the same number.
  void Evaluated(std::int64_t round, std::int64_t rounds, const Metrics& metrics, bool begins, TimePoint now);
  /// All processes have ended, and the job will begin again. `culprit`: the process that caused this, if
  /// known.
  void AttemptEnded(const std::string& why, const std::optional<TracedProcess>& culprit, TimePoint now);
  void BeginsAgain(TimePoint now);
  void Finished(int exit_code, const std::string& story, const std::optional<TracedProcess>& culprit,
                TimePoint now);

  /// Returns the spans that have ended since the last call. The latest round counts as ended only when
  /// another round follows or its generation or attempt ends, because its metrics may arrive one by one.
  std::vector<Span> TakeEnded() { return std::exchange(ended_, {}); }

 private:
  std::int64_t NanosecondsAt(TimePoint now) const;
  Span Begin(const std::string& name, const std::string& parent, TimePoint now);
  void End(std::optional<Span>& span, TimePoint now);
  void Fail(std::optional<Span>& span, const std::string& why) const;
  void AddCulprit(Span& span, const TracedProcess& culprit) const;
  void BeginAttempt(TimePoint now);
  void EndAttempt(bool failed, const std::string& why, const std::optional<TracedProcess>& culprit,
                  TimePoint now);
  void EndRound();
  void EndGeneration(TimePoint now);
  void BeginJoin(bool anew, TimePoint now);

  const TraceContext context_;
  const NewId new_id_;
  const TimePoint began_;
  const std::int64_t began_ns_;
  std::optional<Span> job_, attempt_, generation_, start_, join_, round_;
  std::string attempt_id_;     ///< ID of the span of the current or, between attempts, next attempt
  std::string rounds_parent_;  ///< ID of the span of the generation or attempt that new rounds belong to
  std::int64_t attempts_ = 0;
  std::int64_t round_number_ = 0;
  TimePoint round_begins_;  ///< when the span of the next round begins
  std::vector<bool> running_;
  std::vector<std::optional<ExitStatus>> exits_;  ///< the latest failure of each process in this attempt
  std::size_t num_running_ = 0;
  int joined_ = 0, expected_ = 0;
  bool linked_ = false;        ///< whether all workers have been linked in this attempt
  bool join_is_anew_ = false;  ///< whether join_ began after all workers had been linked
  bool stopping_ = false;
  std::vector<Span> ended_;
};

}  // namespace warren::submit
