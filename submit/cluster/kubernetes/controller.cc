#include "submit/cluster/kubernetes/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "submit/cluster/kubernetes/manifest.h"
#include "submit/process/command.h"
#include "tracker/log_lines.h"

namespace warren::submit {
namespace {

/// The pause between queries: kAskPodsSoon after a change, then growing up to kAskPodsLater as long as
/// nothing changes.
constexpr std::chrono::milliseconds kAskPodsSoon{500};
constexpr std::chrono::milliseconds kAskPodsLater{5000};
/// The pause before a log is followed again after kubectl has exited.
constexpr std::chrono::milliseconds kFollowAgain{300};
/// The time after Stop for which output of pods that are ending is still read. The supervisor waits longer
/// for the processes (kKillPatience).
constexpr std::chrono::milliseconds kEndPatience{4500};
/// The maximum number of attempts to delete the objects, and the pause between attempts.
constexpr int kDeleteTries = 5;
constexpr std::chrono::seconds kDeletePause{2};
/// After this many consecutive failures to read a log, the user is warned, and the log of a pod that has
/// ended is not read again.
constexpr int kFollowerTries = 4;
/// The maximum number of times that the log of an ended pod is read until it contains the end of the process.
constexpr int kReadsAfterTheEnd = 2;
/// After this many reports of a failed Job, the Job's own explanation is used, since a pod's is no longer
/// expected.
constexpr int kAsksAboutFailure = 6;
/// The number of consecutive failed queries after which the user is warned.
constexpr int kFailedPodAsks = 5;
/// The time after which the user is warned of missing pods.
constexpr std::chrono::seconds kPodPatience{10};
constexpr std::size_t kComplaintBytes = 4000;
constexpr int kLostPod = 255;
constexpr int kKilled = 128 + SIGKILL;
constexpr char kWorkerRole[] = "worker";

std::string Trimmed(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \r\n");
  return end == std::string::npos ? std::string() : text.substr(0, end + 1);
}

std::string OnOneLine(const std::string& said) {
  std::string text = Trimmed(said);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    text.replace(at, 1, " / ");
  }
  return text;
}

/// Whether kubectl reports that permission was denied, so that retrying is useless.
bool IsForbidden(const std::string& said) {
  return said.find("(Forbidden)") != std::string::npos;
}

}  // namespace

bool KubernetesController::busy() const {
  return deleting_ ||
         std::any_of(pods_.begin(), pods_.end(), [](const auto& pod) { return pod.second.is_followed; });
}

void KubernetesController::Trouble(std::string story) {
  troubled_ = true;
  Tell(JobTroubled{std::move(story)});
}

// --- starting --------------------------------------------------------------------------------------------

void KubernetesController::Start(std::size_t index, std::string_view role, int attempt, TimePoint now) {
  Process& process = processes_[index];
  process.wanted = true;
  process.failed = false;
  process.attempt = attempt;
  if (launched_ && !stopping_) {  // the script in the pod, or Kubernetes, restarts the process
    Changed(now);
    return CatchUp(index);
  }
  if (index == 0) {
    roles_.clear();
    stopping_ = troubled_ = false;
    end_at_.reset();
  }
  roles_.emplace_back(role);
  if (roles_.size() == setting_.num_processes) Launch();
}

/// Reports the start or the end of an attempt that happened before Start was called for the attempt.
void KubernetesController::CatchUp(std::size_t index) {
  Process& process = processes_.at(index);
  if (!process.early.empty()) {
    const ExitStatus status = process.early.front();
    process.early.pop_front();
    End(index, status);
  } else if (process.begun) {
    Tell(ProcessLocated{index, *process.begun});
  }
}

void KubernetesController::Launch() {
  ++start_;
  launched_ = true;
  processes_wait_ = processes_launched_ = complained_of_pods_ = false;
  work_is_done_ = workers_finished_ = asked_since_finish_ = false;
  failed_job_.clear();
  tracker_words_.clear();
  told_.clear();
  asks_since_failure_ = failed_asks_ = 0;
  pods_.clear();
  follow_at_.clear();
  for (auto& [index, process] : processes_) process = {.wanted = true, .attempt = process.attempt};
  Do(SetDeletion{true});
  Say(Severity::kInfo,
      fmt::format(
          "this is job {} of Kubernetes{}", setting_.job_name,
          setting_.kube_namespace.empty() ? "" : fmt::format(", namespace {}", setting_.kube_namespace)));
  Do(MakeObjects{start_, processes_.begin()->second.attempt});
}

void KubernetesController::Made(std::size_t num_jobs) {
  if (stopping_) return;
  num_jobs_ = num_jobs;
  // The pod whose name the others look up is created first, because a failed lookup would be cached for a
  // while.
  processes_wait_ = !setting_.host_role.empty();
  Apply(true, !processes_wait_);
}

void KubernetesController::NotMade(const std::string& why) {
  Trouble(why);
}

void KubernetesController::Apply(bool before, bool processes) {
  applying_ = true;
  applying_processes_ = processes;
  Do(ApplyObjects{before, processes});
}

void KubernetesController::Applied(const std::string& printed, const ExitStatus& status, TimePoint now) {
  applying_ = false;
  // A last query finds the pods that have begun, whose processes may still print something while they end.
  if (stopping_ && status.ok() && applying_processes_ && end_at_) return Do(AskForPods{start_, true});
  if (stopping_) return Delete();
  if (!status.ok()) {
    return Trouble(fmt::format("kubectl apply {}: {}", status.Describe(), OnOneLine(printed)));
  }
  processes_launched_ = applying_processes_;
  launched_at_ = now;
  Changed(now);
}

// --- what the pods do ------------------------------------------------------------------------------------

void KubernetesController::Changed(TimePoint now) {
  ask_pause_ = kAskPodsSoon;
  AskLater(now);
}

void KubernetesController::AskLater(TimePoint now) {
  ask_at_ = now + ask_pause_;
  ask_pause_ = std::min(kAskPodsLater, ask_pause_ + ask_pause_ / 2);
}

void KubernetesController::Ask() {
  if (stopping_ || !launched_ || std::exchange(asking_, true)) return;
  asked_since_finish_ = workers_finished_;
  Do(AskForPods{start_, false});
}

/// Ends the queries. Also kills a running one, which would delay the end if it hung.
void KubernetesController::StopAsking() {
  ask_at_.reset();
  if (asking_) Do(KillAsk{});
}

void KubernetesController::Reported(const KubeReport& report, bool at_the_end, TimePoint now) {
  if (at_the_end) {
    if (!deleting_) FollowAll(report, now);
    return DeleteAndHear();
  }
  asking_ = false;
  if (stopping_) return;
  OnReport(report, now);
  failed_asks_ = 0;
  if (!stopping_) AskLater(now);
}

/// Tolerates an API server that is unavailable for a while, but not one that denies permission.
void KubernetesController::NotReported(const std::string& why, bool at_the_end, TimePoint now) {
  if (at_the_end) return DeleteAndHear();
  asking_ = false;
  if (stopping_) return;
  const std::string story = fmt::format("kubectl get: {}", OnOneLine(why));
  Say(Severity::kDebug, story);
  if (IsForbidden(why)) return Trouble(story);
  if (++failed_asks_ == kFailedPodAsks) {
    Say(Severity::kWarning, fmt::format("cannot get the state of the pods: {}", story));
  }
  AskLater(now);
}

void KubernetesController::OnReport(const KubeReport& report, TimePoint now) {
  // An exceeded deadline is reported before the ends of pods, because it is their cause.
  if (report.failed_job.starts_with("DeadlineExceeded") && !held_) return TellOfFailedJob(report.failed_job);
  NoteGivenUp(report);
  std::set<std::string> seen;
  for (const PodReport& pod : report.pods) {
    seen.insert(pod.name);
    OnPod(pod, now);
    if (is_ending()) return;
    if (pod.role == setting_.host_role && pod.has_begun && std::exchange(processes_wait_, false)) {
      Apply(false, true);
    }
  }
  for (auto& [name, pod] : pods_) {
    if (seen.contains(name) || pod.settled) continue;
    pod.gone = true;
    if (!pod.is_followed) Settle(pod, now);
    if (is_ending()) return;
  }
  EndThoseThatNeverCome(now);
  if (is_ending()) return;
  TellOfMissingPods(now);
  if (report.failed_job != failed_job_) Changed(now);
  failed_job_ = report.failed_job;
  if (processes_launched_ && report.jobs < num_jobs_) failed_job_ = "it was deleted";
  if (failed_job_.empty() || held_) return;
  if (++asks_since_failure_ >= kAsksAboutFailure) TellOfFailedJob(failed_job_);
}

void KubernetesController::NoteGivenUp(const KubeReport& report) {
  if (!setting_.is_elastic) return;
  for (const GivenUp& one : report.given_up) {
    if (const auto index = IndexOf(one.role, one.rank)) processes_.at(*index).given_up = true;
  }
}

/// Ends the processes whose pods have ended and are not replaced, unless the work is done, and, once all
/// workers have finished, the processes that have no running pod.
void KubernetesController::EndThoseThatNeverCome(TimePoint now) {
  const bool ends_missing = workers_finished_ && asked_since_finish_;
  for (auto& [index, process] : processes_) {
    if (!process.wanted || !(ends_missing || (process.given_up && !work_is_done_))) continue;
    const bool has_pod = std::any_of(pods_.begin(), pods_.end(), [wanted = index](const auto& entry) {
      const Pod& pod = entry.second;
      return pod.index == wanted && !pod.settled && (pod.has_begun || pod.ended);
    });
    if (has_pod) continue;
    Changed(now);
    if (ends_missing) {
      Say(Severity::kInfo,
          fmt::format("worker {} has no pod that runs, and is not needed: the work of the job is done",
                      index));
      End(index, {});
    } else {
      EndAttempt(index, {kLostPod, 0, false, "was lost", true});
    }
    if (is_ending()) return;
  }
}

/// Called when all workers have finished according to the tracker, whether it runs in a pod or in
/// dmlc-submit. The pods are queried once more; pods that have begun in the meantime are followed to their
/// end.
void KubernetesController::WorkersFinished(TimePoint now) {
  if (!std::exchange(workers_finished_, true)) Changed(now);
}

void KubernetesController::TellOfFailedJob(const std::string& why) {
  Trouble(fmt::format("job {} of Kubernetes has ended: {}", setting_.job_name, why));
}

void KubernetesController::TellOfMissingPods(TimePoint now) {
  if (!launched_ || complained_of_pods_ || now - launched_at_ < kPodPatience) return;
  const std::string role = processes_launched_ ? kWorkerRole : setting_.host_role;
  const std::size_t expected = role == kWorkerRole ? setting_.num_workers : 1;
  const auto found = static_cast<std::size_t>(
      std::count_if(pods_.begin(), pods_.end(), [&](const auto& pod) { return pod.second.role == role; }));
  if (found >= expected) return;
  complained_of_pods_ = true;
  Say(Severity::kWarning,
      fmt::format(
          "Kubernetes has created {} of {} pods for role {}; `kubectl describe jobs --selector {}={}` shows why",
          found, expected, role, kJobLabel, setting_.job_name));
}

KubernetesController::Pod& KubernetesController::PodOf(const PodReport& report, TimePoint now) {
  const auto [known, is_new] = pods_.try_emplace(report.name, setting_.job_mark);
  Pod& pod = known->second;
  if (!is_new) return pod;
  Changed(now);
  pod.name = report.name;
  pod.role = report.role;
  pod.replaced = report.replaced;
  pod.index = IndexOf(report.role, report.rank);
  return pod;
}

/// The index in the plan of a process; nullopt if the plan has no such process. The tracker is not in the
/// plan.
std::optional<std::size_t> KubernetesController::IndexOf(const std::string& role, std::size_t rank) const {
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i] == role && rank-- == 0) return i;
  }
  return std::nullopt;
}

void KubernetesController::OnPod(const PodReport& report, TimePoint now) {
  Pod& pod = PodOf(report, now);
  if (pod.settled) return;
  TellWhatItWaitsFor(report);
  if (is_ending()) return;
  if (report.has_begun != pod.has_begun) Changed(now);
  pod.has_begun = pod.has_begun || report.has_begun;
  if (report.ended) pod.ended = report.ended;
  if (pod.has_begun && !pod.is_followed && !pod.log_is_over) return Follow(pod);
  if (pod.ended && (pod.log_is_over || !pod.has_begun)) Settle(pod, now);
}

/// Reports why a pod waits. Reports each reason once, since usually all pods of a job wait for the same
/// reason. Ends the job if waiting is useless.
void KubernetesController::TellWhatItWaitsFor(const PodReport& report) {
  if (report.waits_for.empty()) return;
  const bool is_new = told_.insert(report.waits_for.substr(0, report.waits_for.find(':'))).second;
  const std::string what = fmt::format("pod {} is waiting: {}", report.name, OnOneLine(report.waits_for));
  if (report.never_begins) return Trouble(what);
  if (is_new) Say(Severity::kInfo, what);
}

void KubernetesController::Follow(Pod& pod) {
  pod.is_followed = true;
  Do(FollowLog{pod.name, pod.role, pod.log.since()});
  pod.log.Reconnect();
  pod.complaint.clear();
  if (pod.ended) ++pod.reads_after_the_end;
}

void KubernetesController::NotFollowed(const std::string& name, const std::string& why) {
  const auto found = pods_.find(name);
  if (found != pods_.end()) found->second.is_followed = false;
  Trouble(fmt::format("kubectl logs {}: {}", name, why));
}

void KubernetesController::LogComplained(const std::string& name, std::string_view bytes) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) return;
  std::string& complaint = found->second.complaint;
  complaint += bytes.substr(0, kComplaintBytes - std::min(complaint.size(), kComplaintBytes));
}

void KubernetesController::LogRead(const std::string& name, std::string_view bytes, TimePoint now) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) return;
  Pod& pod = found->second;
  pod.failed_followers = 0;
  pod.log.Append(bytes, [&](std::string_view text) {
    if (!pod.index) {
      pod.lines.Append(text, [&](std::string_view line) { OnTrackerLine(line, now); });
      return;
    }
    pod.messages.Append(
        text,
        [&](std::string_view said) {
          Tell(ProcessWrote{*pod.index, Stream::kOut, std::string(said)});
        },
        [&](const AgentMessage& message) {
          if (message.index == *pod.index) OnMessage(pod, message, now);
        });
  });
}

void KubernetesController::OnTrackerLine(std::string_view line, TimePoint now) {
  const std::string words = Trimmed(std::string(line));
  if (words.ends_with(tracker::kWorkIsDone) || words.ends_with(tracker::kWorkGoesOn)) {
    work_is_done_ = words.ends_with(tracker::kWorkIsDone);
    return;
  }
  if (work_is_done_ && words.ends_with(tracker::kAllHaveFinished)) WorkersFinished(now);
  if (line.size() > 1) tracker_words_ = words;
  if (!stopping_) Tell(LauncherSaid{kTrackerRole, Stream::kErr, std::string(line)});
}

/// Handles the exit of the kubectl that follows a log. This kubectl exits when the container's log ends, but
/// also whenever its connection breaks.
void KubernetesController::FollowerExited(const std::string& name, const ExitStatus& status, TimePoint now) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) return;
  Pod& pod = found->second;
  pod.is_followed = false;
  if (!pod.complaint.empty()) {
    Say(Severity::kDebug, fmt::format("kubectl logs {}: {}", pod.name, Trimmed(pod.complaint)));
  }
  if (!status.ok() && ++pod.failed_followers == kFollowerTries) {
    Say(Severity::kWarning,
        fmt::format("the log of pod {} cannot be read: {}", pod.name, OnOneLine(pod.complaint)));
  }
  const bool told = pod.index && processes_.at(*pod.index).pod == pod.name && processes_.at(*pod.index).last;
  const bool read = status.ok() && pod.ended && (told || pod.reads_after_the_end >= kReadsAfterTheEnd);
  const bool given_up = pod.ended && pod.failed_followers >= kFollowerTries;
  pod.log_is_over = read || given_up || pod.gone || stopping_;
  if (pod.log_is_over) return Settle(pod, now);
  Changed(now);
  follow_at_.insert(now + kFollowAgain);
}

/// Returns whether messages of this pod count for its process, which is the case unless a newer pod has sent
/// any. At the first message of a newer pod, settles the older pod, which is assumed to send nothing more.
bool KubernetesController::Adopt(Process& process, Pod& pod, TimePoint now) {
  if (process.pod == pod.name) return true;
  if (!process.pod.empty() && pod.replaced <= process.replaced) return false;
  const auto before = pods_.find(process.pod);
  if (before != pods_.end() && !before->second.settled) {
    if (!before->second.ended) before->second.gone = true;
    SettleNow(before->second, now);
    if (is_ending()) return false;
  }
  process.pod = pod.name;
  process.replaced = pod.replaced;
  process.begun.reset();
  process.last.reset();
  return true;
}

void KubernetesController::OnMessage(Pod& pod, const AgentMessage& message, TimePoint now) {
  Process& process = processes_.at(message.index);
  if (!Adopt(process, pod, now)) return;
  Changed(now);
  if (message.kind == "start") {
    Started where = ParseStart(message.text);
    where.host = pod.name;
    process.begun = where;
    if (process.wanted && process.early.empty()) Tell(ProcessLocated{message.index, where});
    return;
  }
  if (message.kind == "again") StartedAgain(message.index, ParseEnd(message.text));
  if (message.kind == "exit" || message.kind == "stopped") {
    process.last =
        ParseEnd(message.text);  // reported when the container has ended and all output has arrived
    pod.was_stopped = message.kind == "stopped";
  }
}

/// Handles the restart of a command in its pod. If the work of an elastic job is done by now, the loss may
/// have happened earlier, because logs arrive late. The result of the restarted command then decides whether
/// the worker succeeds.
void KubernetesController::StartedAgain(std::size_t index, const ExitStatus& status) {
  if (!work_is_done_) return EndAttempt(index, status);
  Say(Severity::kWarning,
      fmt::format("worker {} (pod {}) {}; by now the work of the job is done, and it is started again", index,
                  processes_.at(index).pod, status.Describe()));
}

/// Handles a pod that has ended or is gone, once its log has been read as far as possible.
void KubernetesController::Settle(Pod& pod, TimePoint now) {
  if (WaitsForACause(pod)) return;
  SettleNow(pod, now);
  if (pod.was_stopped) return;
  for (auto& [name, other] : pods_) {  // pods that waited for this one
    if (other.was_stopped && other.log_is_over && !WaitsForACause(other)) SettleNow(other, now);
  }
}

/// Whether Kubernetes may have ended this pod because of another pod, which has failed and is not settled
/// yet. If so, the other pod must be reported first.
bool KubernetesController::WaitsForACause(const Pod& pod) const {
  const bool was_ended = pod.was_stopped || (pod.gone && !pod.ended);
  return was_ended && !stopping_ && std::any_of(pods_.begin(), pods_.end(), [](const auto& entry) {
           const Pod& other = entry.second;
           return !other.settled && !other.was_stopped && other.ended && !other.ended->ok();
         });
}

void KubernetesController::SettleNow(Pod& pod, TimePoint now) {
  if (std::exchange(pod.settled, true)) return;
  if (!pod.index) return SettleTracker(pod);
  const std::size_t index = *pod.index;
  pod.messages.Finish([&](std::string_view said) {
    Tell(ProcessWrote{index, Stream::kOut, std::string(said)});
  });
  Process& process = processes_.at(index);
  if (!Adopt(process, pod, now)) return;
  if (process.last) return EndAttempt(index, Explained(*process.last, pod));
  if (stopping_) return EndAttempt(index, kStopped);
  if (pod.ended) return EndAttempt(index, *pod.ended);
  EndAttempt(index, {kLostPod, 0, false, fmt::format("was lost: its pod {} was deleted", pod.name), true});
}

/// Adds the reason why a process was killed or told to end, which its script cannot report.
ExitStatus KubernetesController::Explained(ExitStatus last, const Pod& pod) const {
  if (!pod.was_stopped && last.ShellCode() != kKilled) return last;
  if (pod.ended && !pod.ended->story.empty()) {
    last.story = pod.ended->story;
  } else if (pod.was_stopped && !stopping_) {
    last.story = fmt::format("was told to end: its pod {} was deleted", pod.name);
  }
  return last;
}

void KubernetesController::SettleTracker(Pod& pod) {
  pod.lines.Finish([&](std::string_view line) { tracker_words_ = Trimmed(std::string(line)); });
  if (stopping_ || (pod.ended && pod.ended->ok())) return;
  std::string story = fmt::format("the tracker (pod {}) {}{}", pod.name,
                                  pod.ended ? pod.ended->Describe() : "was lost: its pod was deleted",
                                  tracker_words_.empty() ? "" : fmt::format(": {}", tracker_words_));
  if (pod.ended && pod.ended->ShellCode() == kNotFound) {
    story +=
        "; its image must contain Warren (--kube-tracker-image), or dmlc-submit must run the tracker itself at an address that the pods can reach (--host-ip)";
  }
  troubled_ = true;
  Tell(TrackerFailed{story});
}

void KubernetesController::EndAttempt(std::size_t index, ExitStatus status) {
  Process& process = processes_.at(index);
  process.begun.reset();
  process.last.reset();
  if (process.given_up && (status.signal != 0 || status.host_lost)) {
    status.place_lost = true;
    status.story = status.Describe() + ", and Kubernetes does not replace its pod: too many have failed";
  }
  if (process.wanted) return End(index, status);
  if (!stopping_) process.early.push_back(status);
}

void KubernetesController::End(std::size_t index, const ExitStatus& status) {
  Process& process = processes_.at(index);
  if (!std::exchange(process.wanted, false)) return;
  process.failed = !status.ok();
  const bool all_ended = std::all_of(processes_.begin(), processes_.end(), [](const auto& entry) {
    return !entry.second.wanted && (!entry.second.failed || entry.second.given_up);
  });
  if (is_ending() || !all_ended || !status.ok()) return Tell(ProcessExited{index, status});
  // The end of the last process is reported only when all objects of the job are deleted.
  held_ = index;
  stopping_ = true;
  StopAsking();
  Delete();
}

// --- the end ---------------------------------------------------------------------------------------------

void KubernetesController::Delete() {
  if (applying_ || std::exchange(deleting_, true)) return;
  delete_tries_ = 0;
  TryToDelete();
}

void KubernetesController::TryToDelete() {
  ++delete_tries_;
  Do(DeleteObjects{});
}

void KubernetesController::Deleted(const std::string& printed, const ExitStatus& status, TimePoint now) {
  if (status.ok()) {
    Do(SetDeletion{false});  // nothing is left to delete
    return OnDeleted();
  }
  Say(delete_tries_ == 1 ? Severity::kWarning : Severity::kDebug,
      fmt::format("kubectl delete {}: {}", status.Describe(), OnOneLine(printed)));
  const bool is_hopeless = IsForbidden(printed);
  if (is_hopeless) Do(SetDeletion{false});
  if (!is_hopeless && delete_tries_ < kDeleteTries) {
    delete_at_ = now + kDeletePause;
    return;
  }
  Say(Severity::kError,
      fmt::format("job {} may still exist; delete it with: {}", setting_.job_name, setting_.delete_command));
  OnDeleted();
}

void KubernetesController::OnDeleted() {
  deleting_ = launched_ = false;
  if (const auto held = std::exchange(held_, std::nullopt)) {
    // The only log still followed is the tracker's.
    KillFollowers();
    Tell(ProcessExited{*held, {}});
  }
}

/// Deletes the Jobs, so that their pods end. Their last output arrives through their logs.
void KubernetesController::Stop(TimePoint now) {
  const bool already = std::exchange(stopping_, true);
  StopAsking();
  if (const auto held = std::exchange(held_, std::nullopt)) Tell(ProcessExited{*held, {}});
  if (already) return;
  end_at_ = now + kEndPatience;
  const bool all_are_followed =
      std::all_of(processes_.begin(), processes_.end(),
                  [this](const auto& process) { return IsFollowed(process.first); });
  const bool being_launched = applying_ && applying_processes_;
  if (!launched_ || !(processes_launched_ || being_launched) || all_are_followed) return DeleteAndHear();
  // A last query finds the pods that have begun since the previous one, so that their logs are followed. If
  // kubectl is still creating pods, Applied makes this query.
  if (!being_launched) Do(AskForPods{start_, true});
}

bool KubernetesController::IsFollowed(std::size_t index) const {
  return std::any_of(pods_.begin(), pods_.end(), [index](const auto& pod) {
    return pod.second.index == index && pod.second.is_followed;
  });
}

void KubernetesController::FollowAll(const KubeReport& report, TimePoint now) {
  for (const PodReport& one : report.pods) {
    Pod& pod = PodOf(one, now);
    if (one.has_begun && pod.index && !pod.is_followed && !pod.log_is_over) Follow(pod);
  }
}

void KubernetesController::DeleteAndHear() {
  if (launched_) Delete();
  for (const auto& [index, process] : processes_) {
    if (!IsFollowed(index)) End(index, kStopped);
  }
}

void KubernetesController::KillFollowers() {
  for (const auto& [name, pod] : pods_) {
    if (pod.is_followed) Do(KillFollower{name});
  }
}

void KubernetesController::EndAllProcesses() {
  KillFollowers();
  for (const auto& [index, process] : processes_) End(index, kStopped);
}

void KubernetesController::Kill() {
  if (applying_) Do(KillApply{});
  EndAllProcesses();
}

// --- time ------------------------------------------------------------------------------------------------

void KubernetesController::Tick(TimePoint now) {
  const auto is_due = [now](std::optional<TimePoint>& when) {
    const bool due = when && *when <= now;
    if (due) when.reset();
    return due;
  };
  bool asks = is_due(ask_at_);
  while (!follow_at_.empty() && *follow_at_.begin() <= now) {
    follow_at_.erase(follow_at_.begin());
    asks = true;
  }
  if (asks) Ask();
  if (is_due(end_at_)) EndAllProcesses();
  if (is_due(delete_at_)) TryToDelete();
}

std::optional<TimePoint> KubernetesController::NextDeadline() const {
  std::optional<TimePoint> next;
  const auto add = [&next](const std::optional<TimePoint>& when) {
    if (when && (!next || *when < *next)) next = when;
  };
  for (const auto& when : {ask_at_, end_at_, delete_at_}) add(when);
  if (!follow_at_.empty()) add(*follow_at_.begin());
  return next;
}

}  // namespace warren::submit
