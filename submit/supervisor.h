// A job's policy: what is started, what is started again when it fails, when everything is stopped, which
// exit code that gives and what is said of it. A state machine over values: processes are indices in the
// plan, time is an argument, what it wants done comes out as actions. No processes, sockets or clocks; run.cc
// has these, tells what happens and carries the actions out.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "submit/failure_arbiter.h"
#include "submit/output/log_line.h"
#include "submit/plan.h"
#include "submit/process/process.h"

namespace warren::submit {

/// Exit codes besides those of the processes.
inline constexpr int kTrouble = 1;
inline constexpr int kReaderGone = 141;  ///< as a program killed by SIGPIPE

/// A process that SIGKILL does not end within this sits in the kernel (a dead network file system, say);
/// nobody can wait for that.
inline constexpr std::chrono::seconds kKillPatience{5};
/// And longer for a launcher to end, and for a queue to take the job out: its commands may be programs of
/// Java.
inline constexpr std::chrono::seconds kClusterPatience{25};

struct JobResult {
  int exit_code = 0;         ///< of dmlc-submit
  bool interrupted = false;  ///< by a signal: nobody may be reading the output any more
};

// --- actions -----------------------------------------------------------------------------------------------

/// Has the cluster do what comes before the first process; Prepared follows.
struct PrepareCluster {};
/// Started or StartFailed follows, and once it has been started, Exited.
struct StartProcess {
  std::size_t index;
  int attempt;  ///< from 0
};
/// Calls Resume after whatever else has happened meanwhile.
struct ResumeSoon {};
/// Tells the tracker that a worker has failed; `how` is for people.
struct ReportFailure {
  std::string task_id;
  std::string how;
};
/// Stops the tracker, so that nobody can join any more.
struct StopTracker {};
/// Stops the tracker and asks every process to end; Exited follows for each, then ClusterIdle.
struct StopAll {};
/// Ends every process at once.
struct KillAll {};
/// Ends what processes left behind and plans the job for another start, with a tracker of its own; Replanned
/// or ReplanFailed follows.
struct Replan {};
/// Shows the error, if it has written one, of a process with which something is begun again.
struct ShowErrorOf {
  std::size_t index;
};
/// Shows of all errors that are not shown yet those of `culprit`, if that is known, and folds the others.
struct ShowErrors {
  std::optional<std::size_t> culprit;
  bool repeat_last_output;  ///< of the culprit, where it has written no error
};
struct ShowProgress {
  int joined, expected;
};
struct HideProgress {};
/// All workers are linked for the first time in this start of the job.
struct TellAllAreUp {
  std::chrono::duration<double> took;
};
/// No worker has joined the job, and all have succeeded: says so where they were meant to.
struct TellOfSeparatePrograms {
  int num_workers;
};
/// The job is over; no action comes after it.
struct FinishJob {
  JobResult result;
  std::string story = {};                   ///< why it failed; empty: it did not
  std::optional<std::size_t> culprit = {};  ///< the process that made it fail, if one did
};
using Action = std::variant<PrepareCluster, StartProcess, ResumeSoon, ReportFailure, StopTracker, StopAll,
                            KillAll, Replan, LogLine, ShowErrorOf, ShowErrors, ShowProgress, HideProgress,
                            TellAllAreUp, TellOfSeparatePrograms, FinishJob>;

// --- what it asks ------------------------------------------------------------------------------------------

/// The rest of the job as it is when something happens.
class JobView {
 public:
  /// A worker for the tracker.
  struct Task {
    bool has_linked = false;             ///< it has been through the making of its links
    bool has_shut_down = false;          ///< it has said so, and does not wait for others
    std::optional<int> gone_after = {};  ///< so many of XGBoost 2.1's had shut down before it did
  };

  virtual ~JobView() = default;
  /// Without one the functions below are not called.
  virtual bool has_tracker() const = 0;
  virtual bool is_collective() const = 0;  ///< the workers are XGBoost's of 2.1 or later
  virtual bool all_assigned() const = 0;   ///< every worker has its rank
  virtual bool linked() const = 0;         ///< all are linked, as far as is known
  virtual bool finished() const = 0;       ///< all workers have ended the job
  virtual Task TaskOf(const std::string& task_id) const = 0;
  /// Something of the cluster's own still runs; ClusterIdle follows.
  virtual bool cluster_is_busy() const = 0;
};

// --- the machine -------------------------------------------------------------------------------------------

/// A process and what is known about it.
struct ProcessState {
  tracker::Role role = tracker::Role::kWorker;
  int task_id = 0;
  std::string name;  ///< "worker 3"
  Started where;
  int attempt = -1;  ///< DMLC_NUM_ATTEMPT
  int restarts = 0;  ///< of it alone, since the job began or was last begun again
  bool running = false;
  bool succeeded = false;
  std::optional<int> rank;

  /// "worker 1 (rank 2, host vm, pid 4242)"
  std::string Describe() const;
};

struct RestartPolicy {
  int num_restarts = 0;  ///< how often each process may be started again, in each start of the job
  int max_restarts = 0;  ///< how often the whole job may
};

class Supervisor {
 public:
  /// `view` outlives it. The job begins with Begin.
  Supervisor(RestartPolicy policy, const std::vector<PlannedProcess>& plan, const JobView& view);

  // What happens. `now` never goes back.
  void Begin(TimePoint now);
  void Prepared(TimePoint now);
  void Started(std::size_t index, const submit::Started& where, TimePoint now);
  void StartFailed(std::size_t index, int exit_code, const std::string& why, TimePoint now);
  /// Where it runs is known now, later than Started.
  void Located(std::size_t index, const submit::Started& where, TimePoint now);
  void Exited(std::size_t index, const ExitStatus& status, TimePoint now);
  void Resume(TimePoint now);
  void Replanned(TimePoint now);
  void ReplanFailed(const std::string& why, TimePoint now);
  /// The cluster's view of itself may have changed.
  void ClusterIdle(TimePoint now);
  /// The queue has ended all processes and will start them anew.
  void Requeued(const std::string& story, TimePoint now);
  /// The job cannot go on, for a reason that is no process's.
  void Trouble(const std::string& story, TimePoint now);
  /// A tracker that the cluster runs has ended although the job has not.
  void TrackerFailed(const std::string& story, TimePoint now);
  void Signalled(int signal, TimePoint now);
  /// Nobody reads the output any more.
  void ReaderGone(TimePoint now);
  // As the tracker tells it (tracker/server.h).
  void Joined(int joined, int expected, TimePoint now);
  void Assigned(const std::string& task_id, int rank, TimePoint now);
  void Linked(TimePoint now);
  void Broken(const std::string& task_id, const std::string& story, TimePoint now);
  void TrackerFinished(const std::string& failure, TimePoint now);
  /// Does what is due.
  void Tick(TimePoint now);

  /// What is to be done next, in order; nothing: wait for something to happen.
  std::optional<Action> NextAction();
  /// When Tick has something to do next, if ever.
  std::optional<TimePoint> NextDeadline() const;

  const ProcessState& process(std::size_t index) const { return processes_[index]; }
  std::size_t size() const { return processes_.size(); }

 private:
  enum class Phase {
    kRunning,
    kRestarting,  ///< all is being stopped, to begin anew
    kReplanning,
    kStopping,
    kFinished
  };
  /// A worker that succeeded, until what it last said to the tracker has arrived.
  struct Settling {
    TimePoint until;
    std::size_t index;
  };

  bool is_running() const { return phase_ == Phase::kRunning; }
  void Do(Action action);
  void DoSoon(bool& what);
  void StartNext();
  void StartOne(std::size_t index);

  void OnSuccess(std::size_t index);
  void OnFailure(std::size_t index, const ExitStatus& status);
  void CheckThatJobCanStart();
  void CheckThatItWasLinked(std::size_t index);
  void CheckThatAllCanBeLinkedAgain();
  void GiveUpOn(const ProcessState& process, const char* when);
  bool HasDoneItsPart(const ProcessState& process) const;
  bool HasLeft(const ProcessState& process) const;
  JobView::Task TaskOf(const ProcessState& process) const;
  bool is_collective() const { return view_.has_tracker() && view_.is_collective(); }
  std::optional<std::size_t> WorkerOfTask(const std::string& task_id) const;

  void HandleCase();
  void TakeBackSuccess(std::size_t index, FailureCase& gathered);
  void Handle(const Failure& failure);
  void FailOrBeginAgain(int exit_code, const std::string& story);
  bool MayBeginAgain() const;
  std::string AfterRestarts() const;
  void BeginAgain(const std::string& why);
  void StopToBeginAgain(const std::string& why, const std::string& count);
  void OnTrackerFailed(const std::string& story);

  void Fail(int exit_code, const std::string& story);
  void StopEverything();
  void GiveUpWaiting();
  void FinishWhenAllAreGone();
  void Finish();

  const RestartPolicy policy_;
  const JobView& view_;
  std::deque<Action> actions_;
  std::vector<ProcessState> processes_;
  FailureArbiter arbiter_;
  TimePoint now_;
  TimePoint begin_;

  Phase phase_ = Phase::kRunning;
  std::size_t num_started_ = 0;
  std::size_t num_running_ = 0;
  std::size_t num_succeeded_ = 0;
  int num_joined_ = 0;
  bool any_joined_ = false;  ///< a worker has, in this start of the job
  int job_restarts_ = 0;
  bool linked_ = false;
  std::vector<Settling> settling_;
  std::vector<std::size_t> left_unjoined_;
  std::vector<std::size_t> left_unfinished_;  ///< with success, linked, without having said so to the tracker

  // What Resume is to do.
  bool start_soon_ = false;
  bool check_links_soon_ = false;
  bool handle_case_soon_ = false;
  bool check_end_soon_ = false;

  bool stop_is_due_ = false;           ///< StopAll waits to be carried out
  std::optional<TimePoint> patience_;  ///< with what is being stopped
  bool waited_for_cluster_ = false;
  JobResult result_;
  std::string story_;                   ///< why the job failed
  std::optional<std::size_t> culprit_;  ///< whose last words belong to the story
};

}  // namespace warren::submit
