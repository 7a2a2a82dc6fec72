// What is known of a job while it runs, put together from all who say something of it: the job's policy
// (supervisor.h) and tracker, the workers' reports (wire/report.h), their hosts' samples (process/sample.h)
// and what boosters print. A state machine over values: time is an argument; what people are to be told comes
// out as findings, and what they may look at as a snapshot. No sockets, files or clocks.
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
#include "submit/monitor/waiting_time.h"
#include "submit/plan.h"
#include "submit/process/process.h"

namespace warren::submit {

struct MonitorOptions {
  std::chrono::milliseconds hang_timeout{std::chrono::minutes(1)};  ///< zero: hangs are not looked for
  std::chrono::milliseconds sample_interval{std::chrono::seconds(5)};
  bool joins = true;  ///< workers are expected at a tracker that says so
};

class JobMonitor {
 public:
  /// `job`: what does not change of its snapshots. The processes are those of the plan.
  JobMonitor(JobSnapshot job, const MonitorOptions& options, const std::vector<PlannedProcess>& plan,
             TimePoint now);

  // What happens. `now` never goes back.
  void Started(std::size_t index, const submit::Started& where, TimePoint now);
  void Located(std::size_t index, const submit::Started& where);
  void Exited(std::size_t index, const ExitStatus& status);
  /// The whole job begins anew.
  void BeginsAgain();
  void Joined(int joined, int expected, TimePoint now);
  void Assigned(const std::string& task_id, int rank);
  void Linked(TimePoint now);
  void Reported(const wire::WorkerReport& report, TimePoint now);
  void Sampled(std::size_t index, const ProcessSample& sample, TimePoint now);
  /// The process has written something to its standard output or standard error.
  void Wrote(std::size_t index, TimePoint now);
  /// The worker of this rank has printed something by way of the tracker. Other ranks than the job's are
  /// nobody.
  void WroteByTracker(int rank, TimePoint now);
  /// The process is held by the debugger that shows its stack for us from here on, or no more.
  void Dumped(std::size_t index, bool begins);
  /// Output, and with it samples of other hosts, are left where they are from here on, or no more.
  void OutputPaused(bool paused, TimePoint now);
  /// Nobody hears reports any more: the workers have left the job.
  void ReportsEnd();
  /// This process did not run for so long: others could not be heard.
  void StoodStill(TimePoint::duration how_long);
  /// Whether this worker's standard output speaks for the job: that of rank 0.
  bool Speaks(std::size_t index) const;
  /// A line that the job, or the worker that speaks for it, printed: evaluations are taken out of them.
  void Printed(std::string_view line, TimePoint now);
  /// Something that people were told of the job.
  void Said(const std::string& severity, const std::string& text, TimePoint now);
  void Finished(int exit_code, const std::string& story, TimePoint now);

  /// Looks for hangs. What is found is also an event of the job.
  std::vector<Finding> Look(TimePoint now);
  /// Workers have waited for others to join for as long as a hang may last; true once.
  bool JoiningTakesLong(TimePoint now);

  JobSnapshot Snapshot(TimePoint now) const;
  /// "worker 1 (rank 2, host vm, pid 4242)"
  std::string Describe(std::size_t index) const;

 private:
  struct Worker {
    std::optional<TimePoint> runs_since;
    int starts = 0;  ///< since the job began, or was begun again
    TimePoint state_since, busy;
    std::optional<TimePoint> sampled = {}, sampled_first = {}, reported = {};
    std::optional<TimePoint> heard = {};  ///< when its host was heard of
    std::optional<TimePoint> sampled_before = {}, printed = {};
    TimePoint::duration report_gap{0};
    TimePoint call_since;
    bool is_dumped = false;
  };
  /// How much each rank had made others wait, at a moment.
  struct Waits {
    TimePoint when;
    std::vector<double> seconds;
  };

  /// Rounds are printed, reported by a program, or both.
  struct RoundSource {
    std::optional<TimePoint> said = {};
    int unanswered = 0;  ///< how often it has spoken since the other one did
    void Say(TimePoint now, RoundSource& other);
    /// Whether it is still in use: the other one has not spoken alone for a while.
    bool Speaks(const RoundSource& other, TimePoint now) const;
  };

  double SecondsAt(TimePoint time) const;
  std::size_t RankOf(std::size_t index) const;
  std::optional<std::size_t> WorkerOf(const std::string& task_id) const;
  void AddEvaluation(std::int64_t round, const std::vector<std::pair<std::string, double>>& metrics,
                     TimePoint now);
  void SetRound(std::int64_t round, TimePoint now);
  void TakeProgress(std::size_t index, const wire::ReportedProgress& progress, TimePoint now);
  std::optional<Signs> SignsOf(std::size_t index) const;
  void AddWaitingTimes(JobSnapshot& job, TimePoint now) const;

  JobSnapshot job_;
  MonitorOptions options_;
  TimePoint began_;
  std::vector<Worker> workers_;
  std::size_t first_worker_ = 0;  ///< in the plan
  const TimePoint::duration report_interval_;
  HangWatch hang_watch_;
  WaitingTime waiting_;
  std::deque<Waits> waits_before_;
  std::optional<TimePoint> output_paused_;
  std::optional<TimePoint> joining_since_;
  bool joining_was_told_ = false;
  std::optional<TimePoint> linked_;
  std::optional<TimePoint> round_ended_;
  bool restarted_ = false;  ///< a process, or all, since the latest evaluation
  RoundSource printed_, reported_;
  double round_seconds_ = 0;  ///< when the latest round was heard of
  std::optional<TimePoint> finished_;
};

}  // namespace warren::submit
