// Collects the state of a job while it runs: from events of its processes and its tracker, the workers'
// reports (wire/report.h), samples of the processes (process/sample.h), and the evaluations that training
// programs print. A state machine without I/O: the time is an argument, warnings are returned as findings,
// and the state to display is returned as a snapshot.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/monitor/hang_watch.h"
#include "submit/monitor/snapshot.h"
#include "submit/monitor/usage_history.h"
#include "submit/monitor/waiting_time.h"
#include "submit/output/log_line.h"
#include "submit/process/planned_process.h"
#include "submit/process/process.h"
#include "submit/trace/job_trace.h"

namespace warren::submit {

struct MonitorOptions {
  std::chrono::milliseconds hang_timeout{std::chrono::minutes(1)};  ///< zero: no hang detection
  std::chrono::milliseconds sample_interval{std::chrono::seconds(5)};
  bool joins = true;          ///< whether the tracker reports the workers that join
  JobTrace* trace = nullptr;  ///< receives the job's events, unless null; must outlive the monitor
};

class JobMonitor {
 public:
  /// `job`: the members of the snapshots that are known from the beginning. `plan`: the job's processes.
  JobMonitor(JobSnapshot job, const MonitorOptions& options, const std::vector<PlannedProcess>& plan,
             TimePoint now);

  // Events. `now` must never decrease.
  void Started(std::size_t index, const submit::Started& where, TimePoint now);
  void Located(std::size_t index, const submit::Started& where, TimePoint now);
  void Exited(std::size_t index, const ExitStatus& status, TimePoint now);
  /// All processes are being stopped.
  void StopBegins();
  /// All processes have ended, and the whole job will be restarted. `culprit`: the process that caused the
  /// restart, if known.
  void AttemptEnded(const std::string& why, std::optional<std::size_t> culprit, TimePoint now);
  /// The whole job is restarted.
  void BeginsAgain(TimePoint now);
  void Joined(int joined, int expected, TimePoint now);
  void Assigned(const std::string& task_id, int rank);
  void Linked(TimePoint now);
  void GenerationBegan(const tracker::GenerationBegan& generation, TimePoint now);
  void Reported(const wire::WorkerReport& report, TimePoint now);
  void Sampled(std::size_t index, const ProcessSample& sample, TimePoint now);
  /// The process wrote to its standard output or standard error.
  void Wrote(std::size_t index, TimePoint now);
  /// The worker of this rank printed through the tracker. Unknown ranks are ignored.
  void WroteByTracker(int rank, TimePoint now);
  /// A debugger started by dmlc-submit begins or ends reading the process's stacks. The process is stopped
  /// meanwhile.
  void Dumped(std::size_t index, bool begins);
  /// The stacks of the process have been read; long text is truncated.
  void TookStack(std::size_t index, const std::string& text);
  /// Reading the output of processes, and with it the samples from other hosts, is paused or resumed.
  void OutputPaused(bool paused, TimePoint now);
  /// The tracker has finished the job, so no further reports will arrive.
  void ReportsEnd();
  /// dmlc-submit was suspended for `how_long`, and received nothing from the workers in this time.
  void StoodStill(TimePoint::duration how_long);
  /// Whether this worker's standard output counts as the job's output: true for rank 0, and for the first
  /// worker as long as it has no rank.
  bool Speaks(std::size_t index) const;
  /// Handles a line that was printed through the tracker, or by the worker for which Speaks is true. The line
  /// is parsed for evaluations.
  void Printed(std::string_view line, TimePoint now);
  /// A message about the job has been shown to the user.
  void Said(Severity severity, const std::string& text, TimePoint now);
  /// The job is over. `culprit`: the process that made the job fail, if known.
  void Finished(int exit_code, const std::string& story, std::optional<std::size_t> culprit, TimePoint now);

  /// Finds hangs (HangWatch::Look), and updates the state and the trouble of each worker in the snapshots.
  std::vector<Finding> Look(TimePoint now);
  /// Returns true, once per wait, if workers have waited for others to join for as long as the hang timeout.
  bool JoiningTakesLong(TimePoint now);

  JobSnapshot Snapshot(TimePoint now) const;
  /// Returns the current usage of each process, in the plan's order; zero for processes that are not running
  /// or have not been sampled yet.
  std::vector<Usage> UsageNow() const;
  double SecondsAt(TimePoint time) const;
  /// The index of the first worker, which may have any rank.
  std::size_t first_worker() const { return first_worker_; }
  /// The index of the worker with this rank; nullopt if none exists.
  std::optional<std::size_t> WorkerOfRank(int rank) const;
  /// The process as in DescribeProcess.
  std::string Describe(std::size_t index) const;

 private:
  struct Worker {
    std::optional<TimePoint> runs_since;
    int starts = 0;  ///< number of starts since the job began or was restarted
    TimePoint state_since, busy;
    std::optional<TimePoint> sampled = {}, sampled_first = {}, reported = {};
    std::optional<TimePoint> heard = {};  ///< when the latest sample arrived, plus pauses since then
    std::optional<TimePoint> sampled_before = {}, printed = {};
    TimePoint::duration report_gap{0};
    TimePoint call_since;
    bool is_dumped = false;
  };
  /// The time for which each rank had made others wait until `when`.
  struct Waits {
    TimePoint when;
    std::vector<double> seconds;
  };

  /// One of the two sources of round numbers, of which a job may use both: printed lines, and reports by the
  /// program.
  struct RoundSource {
    std::optional<TimePoint> said = {};
    int unanswered = 0;  ///< numbers from this source since the other source's last number
    void Say(TimePoint now, RoundSource& other);
    /// Whether this source is in use: its latest number is recent, or the other source has given at most one
    /// number since.
    bool Speaks(const RoundSource& other, TimePoint now) const;
  };

  std::optional<std::size_t> WorkerOf(const std::string& task_id) const;
  void AddEvaluation(std::int64_t round, const std::vector<std::pair<std::string, double>>& metrics,
                     TimePoint now);
  void SetRound(std::int64_t round, TimePoint now);
  void TakeProgress(std::size_t index, const wire::ReportedProgress& progress, TimePoint now);
  TracedProcess Traced(std::size_t index) const;
  std::optional<Signs> SignsOf(std::size_t index) const;
  void AddWaitingTimes(JobSnapshot& job, TimePoint now) const;

  JobSnapshot job_;
  MonitorOptions options_;
  TimePoint began_;
  std::vector<Worker> workers_;
  std::size_t first_worker_ = 0;  ///< the first worker's index in the plan
  const std::size_t most_ranks_;
  const TimePoint::duration report_interval_;
  HangWatch hang_watch_;
  WaitingTime waiting_;
  std::deque<Waits> waits_before_;
  std::optional<TimePoint> output_paused_;
  std::optional<TimePoint> joining_since_;
  bool joining_was_told_ = false;
  std::optional<TimePoint> linked_;
  std::optional<TimePoint> round_ended_;
  bool restarted_ = false;  ///< whether any process was restarted since the latest evaluation
  RoundSource printed_, reported_;
  double round_seconds_ = 0;  ///< when job_.round was last set, since the job began
  std::optional<TimePoint> finished_;
};

}  // namespace warren::submit
