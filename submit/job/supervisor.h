// The policy of a job: decides when its processes are started, restarted and stopped, and determines the exit
// code and the messages to the user. A state machine without I/O: processes are indices into the plan, the
// time is an argument, and actions are returned. run.cc owns the processes, sockets and clocks; it reports
// events and carries out the actions.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "submit/cluster/host_losses.h"
#include "submit/cluster/seats.h"
#include "submit/job/actions.h"
#include "submit/job/failure_arbiter.h"
#include "submit/job/process_state.h"
#include "submit/job/seating.h"
#include "submit/process/planned_process.h"
#include "submit/process/process.h"

namespace warren::submit {

/// Exit codes of dmlc-submit that are not taken from a process or a signal (see also kUsage in run.h).
inline constexpr int kTrouble = 1;       ///< a failure for which there is no other code
inline constexpr int kReaderGone = 141;  ///< the code that shells report for a program killed by SIGPIPE

/// If SIGKILL does not end a process within this time, the process is stuck in the kernel (e.g. in a dead
/// network file system), and waiting longer is useless.
inline constexpr std::chrono::seconds kKillPatience{5};
/// Additional time, after all processes have ended, for a launcher to end and for a queue to remove the job:
/// their commands may be Java programs, which are slow.
inline constexpr std::chrono::seconds kClusterPatience{25};

// --- queries -----------------------------------------------------------------------------------------------

/// The supervisor's view of the rest of the job, at the time of an event.
class JobView {
 public:
  /// A worker as the tracker sees it.
  struct Task {
    bool has_linked = false;     ///< has been linked at least once
    bool has_shut_down = false;  ///< announced its shutdown and does not wait for others
    /// The number of workers that had shut down or been lost before this one; nullopt if this one is not
    /// gone, and always with XGBoost before 2.1.
    std::optional<int> gone_after = {};
  };

  virtual ~JobView() = default;
  /// Whether dmlc-submit runs the tracker. If not, the functions below are not called, except work_is_done
  /// and cluster_is_busy.
  virtual bool has_tracker() const = 0;
  virtual bool is_collective() const = 0;  ///< workers of XGBoost 2.1 or later have joined
  virtual bool all_assigned() const = 0;   ///< every worker has its rank
  virtual bool linked() const = 0;         ///< all workers are linked, as far as is known
  virtual bool finished() const = 0;       ///< all workers have left, or the tracker has given up
  virtual bool work_is_done() const = 0;   ///< a worker of an elastic job has reported that the work is done
  virtual Task TaskOf(const std::string& task_id) const = 0;
  /// Whether commands of the cluster itself are still running. If so, ClusterIdle is called when they have
  /// ended.
  virtual bool cluster_is_busy() const = 0;
};

// --- the state machine -------------------------------------------------------------------------------------

struct RestartPolicy {
  int num_restarts = 0;  ///< maximum per process and start of the job; 0 if min_workers is set
  int max_restarts = 0;  ///< maximum for the whole job; restarts by a queue do not count
  /// Set in an elastic job, which continues while at least this many workers are left. A lost worker is
  /// restarted, unless its place is gone or is left out (HostLosses).
  std::optional<int> min_workers = {};
  /// Whether a worker's place, for which losses are counted, is its host. If not, all workers are on one
  /// host, and each worker is its own place.
  bool places_are_hosts = false;
  /// The source of the hosts, such as "the host file", in an elastic job whose hosts may change; otherwise
  /// empty. If set, only processes that are given seats (cluster/seats.h) are started.
  std::string hosts_from = {};
  /// Whether a job with `hosts_from` waits for hosts, instead of failing, if a loss leaves seats for at least
  /// one worker, but for fewer than min_workers.
  bool awaits_hosts = false;
  /// Whether the cluster itself restarts lost workers and reports those that it does not restart. If so, no
  /// place is left out, and the number of workers that are about to start is unknown.
  bool cluster_replaces = false;
};

class Supervisor {
 public:
  /// `view` must outlive this object. The job begins with Begin.
  Supervisor(RestartPolicy policy, const std::vector<PlannedProcess>& plan, const JobView& view);

  // Events. `now` must never decrease.
  void Begin(TimePoint now);
  void Prepared(TimePoint now);
  /// Sets the hosts of a job whose hosts may change. Call before Prepared and after each change.
  void HostsChanged(const std::vector<HostRoom>& hosts, TimePoint now);
  void Started(std::size_t index, const submit::Started& where, TimePoint now);
  void StartFailed(std::size_t index, int exit_code, const std::string& why, TimePoint now);
  /// Reports where the process runs, if Started did not. May be called repeatedly.
  void Located(std::size_t index, const submit::Started& where, TimePoint now);
  void Exited(std::size_t index, const ExitStatus& status, TimePoint now);
  void Resume(TimePoint now);
  void Replanned(TimePoint now);
  void ReplanFailed(const std::string& why, TimePoint now);
  /// No command of the cluster is running any longer (JobView::cluster_is_busy).
  void ClusterIdle(TimePoint now);
  /// The queue has ended all processes and will start them again.
  void Requeued(const std::string& story, TimePoint now);
  /// The job cannot continue, for a reason outside the processes.
  void Trouble(const std::string& story, TimePoint now);
  /// A tracker run by the cluster has ended although the job has not.
  void TrackerFailed(const std::string& story, TimePoint now);
  void Signalled(int signal, TimePoint now);
  /// The reader of standard output has gone away.
  void ReaderGone(TimePoint now);
  // Events from the tracker (tracker/server.h).
  void Joined(int joined, int expected, TimePoint now);
  void Assigned(const std::string& task_id, int rank, TimePoint now);
  void Linked(TimePoint now);
  void Broken(const std::string& task_id, const std::string& story, TimePoint now);
  void TrackerFinished(const std::string& failure, TimePoint now);
  /// Handles deadlines that have passed.
  void Tick(TimePoint now);

  /// Removes and returns the next action; nullopt if no action is pending.
  std::optional<Action> NextAction();
  /// When Tick must next be called, if ever.
  std::optional<TimePoint> NextDeadline() const;

  const ProcessState& process(std::size_t index) const { return processes_[index]; }

 private:
  enum class Phase {
    kRunning,
    kRestarting,  ///< all processes are being stopped, to be started again
    kReplanning,
    kStopping,
    kFinished
  };
  /// A worker that has succeeded, but whose last messages to the tracker may still be in transit. `until`:
  /// when to stop waiting for these messages.
  struct Settling {
    TimePoint until;
    std::size_t index;
  };

  bool is_running() const { return phase_ == Phase::kRunning; }
  void Do(Action action);
  void DoAll(std::vector<Action> actions);
  void DoSoon(bool& what);
  void StartNext();
  void StartOne(std::size_t index);

  void OnSuccess(std::size_t index);
  bool has_seats() const { return !policy_.hosts_from.empty(); }
  void Reseat();
  void TellIfItWaits();
  void OnLossOfSeat(std::size_t index, const ExitStatus& status);

  bool IsOver() const { return num_succeeded_ > 0 || view_.work_is_done(); }
  bool IsLoss(const ExitStatus& status) const;
  void OnLoss(std::size_t index, const ExitStatus& status);
  void FailForWantOfWorkers(std::size_t index, const ExitStatus& status, std::size_t num_left);
  std::string OthersGoOn() const;
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
  std::string Attempt(const ProcessState& process) const;
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
  bool any_joined_ = false;  ///< whether a worker has joined since the job began or was restarted
  int job_restarts_ = 0;
  HostLosses losses_;  ///< the losses of each place in an elastic job
  bool linked_ = false;
  std::vector<Settling> settling_;
  std::vector<std::size_t> left_unjoined_;
  std::vector<std::size_t> left_unfinished_;  ///< workers that were linked and succeeded, but did not
                                              ///< announce their shutdown

  bool prepared_ = false;
  Seating seating_;  ///< used if has_seats()

  // Pending work for Resume (DoSoon).
  bool start_soon_ = false;
  bool reseat_soon_ = false;
  bool check_links_soon_ = false;
  bool handle_case_soon_ = false;
  bool check_end_soon_ = false;

  bool stop_is_due_ = false;           ///< StopAll is among actions_
  std::optional<TimePoint> patience_;  ///< when to give up waiting for a stop (GiveUpWaiting)
  bool waited_for_cluster_ = false;
  JobResult result_;
  std::string story_;                   ///< why the job failed
  std::string restart_story_;           ///< why the job is restarted
  std::optional<std::size_t> culprit_;  ///< the process that caused the failure or restart
};

}  // namespace warren::submit
