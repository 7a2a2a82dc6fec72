// Decides how to create, follow and delete the pods of a job.
//
// Inputs, most with the time: the job requests a process (Start) or the end of all processes (Stop, Kill);
// the API server's reports on the pods and Jobs (Reported, NotReported); the contents of their logs (LogRead,
// FollowerExited), including the messages of the scripts in the pods (scripts/pod.sh); the results of making,
// creating and deleting objects (Made, NotMade, Applied, Deleted); all workers have finished
// (WorkersFinished); time has passed (Tick). Outputs, in order, through TakeActions: objects to create, query
// and delete, logs to follow, and reports to the job of where each process runs and how it ended.
//
// After each Start of a process, ProcessExited follows exactly once. The script in the pod restarts the
// process on its own, so an attempt may end before the job has requested it with Start; the result is then
// kept until that Start. If Kubernetes has replaced the pod of a process, only the messages of one of its
// pods count: the newest pod that has sent any. A pod is settled when it has ended and its log has been read
// as far as possible.
//
// In an elastic job whose tracker is a pod, lines of its log (tracker/log_lines.h) show whether the work is
// done and whether all workers have finished. A process that has no running pod when all workers have
// finished is not needed, and counts as succeeded. A lost process that Kubernetes does not restart ends with
// ExitStatus::place_lost.
//
// A state machine without I/O: processes and clocks are in kubernetes.h.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "submit/cluster/agent_messages.h"
#include "submit/cluster/cluster_event.h"
#include "submit/cluster/kubernetes/log_reader.h"
#include "submit/cluster/kubernetes/pods.h"
#include "submit/output/line_splitter.h"

namespace warren::submit {

/// Make the objects for start number `start` (from 0) of the job, whose processes begin with `attempt`. Then
/// call Made or NotMade.
struct MakeObjects {
  int start;
  int attempt;
};
/// Create objects that were made, and then call Applied.
struct ApplyObjects {
  bool before;     ///< whether to create the objects that the pods need, and the pod whose address they get
  bool processes;  ///< whether to create the Jobs of all other roles
};
/// Query the pods and Jobs, and then call Reported or NotReported.
struct AskForPods {
  int start;
  bool at_the_end;  ///< whether this is the last query, which has a short time limit
};
/// Follow the log of a container. Call LogRead and LogComplained with the output of kubectl, and
/// FollowerExited when it has ended; if it cannot be started, call NotFollowed.
struct FollowLog {
  std::string pod;
  std::string container;
  std::string since;  ///< time from which to read; empty for the beginning
};
/// Delete all objects of the job, and then call Deleted.
struct DeleteObjects {};
/// Set whether there are objects of the job, to be deleted if dmlc-submit dies.
struct SetDeletion {
  bool left;
};
/// Kill the kubectl that runs AskForPods; NotReported is still called.
struct KillAsk {};
/// Kill the kubectl that runs ApplyObjects; Applied is still called.
struct KillApply {};
/// Kill the kubectl that follows the log of this pod; FollowerExited is still called.
struct KillFollower {
  std::string pod;
};
using KubernetesAction = std::variant<MakeObjects, ApplyObjects, AskForPods, FollowLog, DeleteObjects,
                                      SetDeletion, KillAsk, KillApply, KillFollower, ClusterEvent>;

struct KubernetesSetting {
  std::string job_name;
  std::string kube_namespace;
  std::string job_mark;
  std::string host_role;  ///< role of the pod whose address all others are given; see HostRole
  std::size_t num_workers = 0;
  std::size_t num_processes = 0;
  std::string delete_command;  ///< shown to the user
  bool is_elastic = false;
};

class KubernetesController : public ActionQueue<KubernetesAction> {
 public:
  explicit KubernetesController(KubernetesSetting setting) : setting_(std::move(setting)) {}

  void Start(std::size_t index, std::string_view role, int attempt, TimePoint now);
  void Stop(TimePoint now);
  void Kill();

  /// `num_jobs`: the number of Jobs among the objects.
  void Made(std::size_t num_jobs);
  void NotMade(const std::string& why);
  void Applied(const std::string& printed, const ExitStatus& status, TimePoint now);
  void Reported(const KubeReport& report, bool at_the_end, TimePoint now);
  void NotReported(const std::string& why, bool at_the_end, TimePoint now);
  void LogRead(const std::string& pod, std::string_view bytes, TimePoint now);
  /// Call with the standard error of the kubectl that follows the pod's log.
  void LogComplained(const std::string& pod, std::string_view bytes);
  void FollowerExited(const std::string& pod, const ExitStatus& status, TimePoint now);
  void NotFollowed(const std::string& pod, const std::string& why);
  void Deleted(const std::string& printed, const ExitStatus& status, TimePoint now);
  /// Call when the work of an elastic job is done and all workers that had joined the job have left it.
  void WorkersFinished(TimePoint now);
  void Tick(TimePoint now);
  /// When Tick must next be called, if ever.
  std::optional<TimePoint> NextDeadline() const;

  /// Whether a log is being followed or objects are being deleted.
  bool busy() const;
  /// Whether the tracker's pod has reported that the work of an elastic job is done.
  bool work_is_done() const { return work_is_done_; }

 private:
  /// A process of the plan.
  struct Process {
    bool wanted = false;    ///< its end has not been reported since the last Start
    bool failed = false;    ///< its last reported end was a failure, and Start has not been called since
    bool given_up = false;  ///< Kubernetes has stopped replacing its pods
    int attempt = 0;
    std::string pod = {};                 ///< the newest pod that has sent a message about the process
    int replaced = 0;                     ///< number of pods that `pod` has replaced
    std::optional<Started> begun = {};    ///< where the current attempt runs
    std::optional<ExitStatus> last = {};  ///< how the last attempt ended, until its output is complete
    std::deque<ExitStatus> early = {};    ///< results of attempts for which Start has not been called yet
  };

  struct Pod {
    explicit Pod(const std::string& job_mark) : messages(job_mark) {}

    std::string name;
    std::string role;
    std::optional<std::size_t> index;  ///< the process's index in the plan; nullopt for the tracker
    int replaced = 0;
    bool is_followed = false;
    bool has_begun = false;
    bool log_is_over = false;
    bool gone = false;
    bool settled = false;
    bool was_stopped = false;  ///< whether it was told to end before its process had ended
    std::optional<ExitStatus> ended;
    std::string complaint;  ///< standard error of the latest kubectl that has read the log
    int failed_followers = 0;
    int reads_after_the_end = 0;
    LogReader log;
    AgentMessageReader messages;
    LineSplitter lines;  ///< splits the tracker's log
  };

  bool is_ending() const { return stopping_ || troubled_; }
  void CatchUp(std::size_t index);
  void Launch();
  void Apply(bool before, bool processes);

  void Changed(TimePoint now);
  void AskLater(TimePoint now);
  void Ask();
  void StopAsking();
  void OnReport(const KubeReport& report, TimePoint now);
  void TellOfFailedJob(const std::string& why);
  void TellOfMissingPods(TimePoint now);
  Pod& PodOf(const PodReport& report, TimePoint now);
  std::optional<std::size_t> IndexOf(const std::string& role, std::size_t rank) const;
  void OnPod(const PodReport& report, TimePoint now);
  void TellWhatItWaitsFor(const PodReport& report);
  void OnTrackerLine(std::string_view line, TimePoint now);
  void NoteGivenUp(const KubeReport& report);
  void EndThoseThatNeverCome(TimePoint now);
  void Follow(Pod& pod);
  bool Adopt(Process& process, Pod& pod, TimePoint now);
  void OnMessage(Pod& pod, const AgentMessage& message, TimePoint now);
  void Settle(Pod& pod, TimePoint now);
  bool WaitsForACause(const Pod& pod) const;
  void SettleNow(Pod& pod, TimePoint now);
  ExitStatus Explained(ExitStatus last, const Pod& pod) const;
  void SettleTracker(Pod& pod);
  void StartedAgain(std::size_t index, const ExitStatus& status);
  void EndAttempt(std::size_t index, ExitStatus status);
  void End(std::size_t index, const ExitStatus& status);

  void Delete();
  void TryToDelete();
  void OnDeleted();
  bool IsFollowed(std::size_t index) const;
  void FollowAll(const KubeReport& report, TimePoint now);
  void DeleteAndHear();
  void KillFollowers();
  void EndAllProcesses();

  void Trouble(std::string story);
  KubernetesSetting setting_;
  bool applying_ = false;
  bool asking_ = false;

  // State of the current start of the job:
  int start_ = -1;                            ///< the number of the start, from 0; -1 before the first one
  std::vector<std::string> roles_;            ///< roles of the processes in the plan
  std::map<std::size_t, Process> processes_;  ///< by index in the plan
  std::map<std::string, Pod> pods_;           ///< by name
  bool launched_ = false;                     ///< whether there may be objects to delete
  /// Whether the processes' Jobs are not created until the pod whose address they are given has begun.
  bool processes_wait_ = false;
  bool applying_processes_ = false;
  bool processes_launched_ = false;
  TimePoint launched_at_;
  std::size_t num_jobs_ = 0;   ///< number of Jobs once all of them are created
  std::string tracker_words_;  ///< last line of the tracker's log
  bool work_is_done_ = false;
  bool workers_finished_ = false;
  bool asked_since_finish_ = false;  ///< whether the latest query began after all workers had finished
  std::set<std::string> told_;       ///< reasons for waiting that have been shown
  bool complained_of_pods_ = false;
  std::string failed_job_;
  int asks_since_failure_ = 0;

  std::optional<TimePoint> ask_at_;
  std::set<TimePoint> follow_at_;  ///< when to query the pods in order to follow a log again
  std::chrono::milliseconds ask_pause_{0};
  int failed_asks_ = 0;

  std::optional<TimePoint> end_at_;  ///< when to give up on processes that should have ended
  std::optional<TimePoint> delete_at_;
  int delete_tries_ = 0;
  bool stopping_ = false;
  bool troubled_ = false;  ///< whether JobTroubled or TrackerFailed was sent, after which Stop is called
  bool deleting_ = false;
  std::optional<std::size_t> held_;  ///< the last process to succeed, until all objects are deleted
};

}  // namespace warren::submit
