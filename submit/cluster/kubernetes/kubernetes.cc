#include "submit/cluster/kubernetes/kubernetes.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <deque>
#include <sstream>
#include <utility>

#include "submit/cluster/kubernetes/log_reader.h"
#include "submit/cluster/kubernetes/manifest.h"
#include "submit/cluster/notes.h"
#include "submit/command.h"
#include "submit/output/line_splitter.h"
#include "submit/process/environment.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

/// How often kubectl is asked: soon after a change, ever more rarely when nothing happens.
constexpr std::chrono::milliseconds kAskSoon{500};
constexpr std::chrono::milliseconds kAskLater{5000};
/// A log that broke off is followed again after this.
constexpr std::chrono::milliseconds kFollowAgain{300};
/// How long pods may take to end, in which what they say is still heard. Less than JobRun waits for them.
constexpr std::chrono::milliseconds kEndPatience{4500};
/// How long a kubectl may take that asks, that asks once more before the end, that deletes, that creates.
constexpr std::chrono::seconds kAskPatience{20};
constexpr std::chrono::seconds kLastAskPatience{2};
constexpr std::chrono::seconds kDeletePatience{10};
constexpr std::chrono::seconds kApplyPatience{120};
/// How often a delete is tried, and the pause between.
constexpr int kDeleteTries = 5;
constexpr std::chrono::seconds kDeletePause{2};
/// The log of a pod that has ended is given up after so many commands that could not read it.
constexpr int kFollowerTries = 4;
/// One that was read to its end is read again, once, when the end of the process is not in it.
constexpr int kReadsAfterTheEnd = 2;
/// So often a Job may be called failed before that is believed to be all there is to know.
constexpr int kAsksAboutFailure = 6;
/// So often kubectl may fail to answer before that is told.
constexpr int kFailedAsks = 5;
/// So long pods may be missing before that is told.
constexpr std::chrono::seconds kPodPatience{10};
/// How long pods wait for the name of the tracker's pod, or the scheduler's: when that runs, and when it may
/// not even have been created yet.
constexpr int kSecondsToBeKnown = 20;
constexpr int kSecondsUntilItBegins = 600;
constexpr std::size_t kLastWordsBytes = 4000;
constexpr int kLost = 255;
/// What a farewell undoes.
constexpr char kObjects[] = "objects of Kubernetes";

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

const ExitStatus kStopped{0, SIGTERM, false, {}};

}  // namespace

/// A process of the plan.
struct KubernetesCluster::Place {
  bool wanted = false;  ///< its end is still to be told
  bool failed = false;  ///< it has ended so, and nobody has started it again yet
  int attempt = 0;
  std::string pod;                 ///< the newest that has said something of it
  int replaced = 0;                ///< how many pods there were before that
  std::optional<Started> begun;    ///< where an attempt runs
  std::optional<ExitStatus> last;  ///< how the last one ended, until all it wrote is here
  std::deque<ExitStatus> early;    ///< of attempts that ended before somebody asked for them
};

struct KubernetesCluster::Pod {
  explicit Pod(const std::string& job_mark) : notes(job_mark) {}

  std::string name;
  std::string role;
  std::optional<std::size_t> index;  ///< in the plan; none: the tracker
  int replaced = 0;
  pid_t follower = -1;
  bool has_begun = false;
  bool log_is_over = false;
  bool gone = false;
  bool settled = false;
  std::optional<ExitStatus> ended;
  std::string complaint;  ///< of the last follower
  int failed_followers = 0;
  int reads_after_the_end = 0;
  LogReader log;
  NoteReader notes;
  LineSplitter lines;  ///< of the tracker
};

KubernetesCluster::KubernetesCluster(asio::io_context& io, Children& children, const Options& options,
                                     ClusterEvents events)
    : io_(io),
      children_(children),
      options_(options),
      events_(std::move(events)),
      kubectl_(io, children, options, [this] { TellWhenIdle(); }),
      job_mark_(NewJobMark()),
      ask_timer_(io),
      end_timer_(io),
      delete_timer_(io) {}

KubernetesCluster::~KubernetesCluster() = default;

bool KubernetesCluster::busy() const {
  return kubectl_.busy() || deleting_ ||
         std::any_of(pods_.begin(), pods_.end(), [](const auto& pod) { return pod.second->follower >= 0; });
}

void KubernetesCluster::TellWhenIdle() {
  asio::post(io_, [this] {
    if (!busy()) events_.idle();
  });
}

// --- starting --------------------------------------------------------------------------------------------

Started KubernetesCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  Place& place = places_[index];
  place.wanted = true;
  place.failed = false;
  place.attempt = attempt;
  if (launched_ && !stopping_) {  // its script, or Kubernetes, does it, or has done it already
    Changed();
    asio::post(io_, [this, index] { CatchUp(index); });
    return {};
  }
  if (index == 0) {
    plan_.clear();
    stopping_ = false;
    end_timer_.cancel();
  }
  plan_.push_back(process);
  const auto servers = static_cast<std::size_t>(options_.num_servers);
  if (plan_.size() == static_cast<std::size_t>(options_.num_workers) + servers + (servers > 0 ? 1 : 0)) {
    asio::post(io_, [this] {
      const bool all =
          std::all_of(places_.begin(), places_.end(), [](const auto& place) { return place.second.wanted; });
      if (all && !stopping_) Launch();
    });
  }
  return {};
}

/// What an attempt did before somebody asked for it.
void KubernetesCluster::CatchUp(std::size_t index) {
  Place& place = places_.at(index);
  if (!place.wanted) return;
  if (!place.early.empty()) {
    const ExitStatus status = place.early.front();
    place.early.pop_front();
    End(index, status);
  } else if (place.begun) {
    events_.located(index, *place.begun);
  }
}

void KubernetesCluster::Launch() {
  ++start_;
  launched_ = true;
  processes_launched_ = complained_of_pods_ = false;
  failed_job_.clear();
  tracker_words_.clear();
  told_.clear();
  asks_since_failure_ = failed_asks_ = 0;
  pods_.clear();
  for (auto& [index, place] : places_) {
    Place fresh;
    fresh.wanted = true;
    fresh.attempt = place.attempt;
    place = std::move(fresh);
  }
  children_.SetFarewell(kObjects, kubectl_.Farewell());
  spdlog::info("this is job {} of Kubernetes{}", options_.job_name,
               options_.kube_namespace.empty() ? "" : fmt::format(", namespace {}", options_.kube_namespace));
  KubeManifest manifest;
  try {
    manifest = MakeKubeManifest({&options_, &plan_, start_, places_.begin()->second.attempt, job_mark_,
                                 kSecondsToBeKnown, PlanShipment(options_)});
  } catch (const std::runtime_error& error) {
    asio::post(io_, [this, story = std::string(error.what())] { events_.trouble(story); });
    return;
  }
  num_jobs_ = manifest.processes.size() + static_cast<std::size_t>(std::count_if(
                                              manifest.before.begin(), manifest.before.end(),
                                              [](const Json& object) { return object["kind"] == "Job"; }));
  // A name that is asked for before it is there stays unknown for a while: the pod that has it comes first.
  const std::string processes = WriteYaml(manifest.processes);
  const bool they_wait = !HostRole(options_).empty();
  processes_ = they_wait ? processes : std::string();
  Apply(WriteYaml(manifest.before) + (they_wait ? "" : processes), !they_wait);
}

void KubernetesCluster::Apply(const std::string& manifest, bool with_processes) {
  applier_ = kubectl_.Run(
      kubectl_.ApplyWords(fmt::format("dmlc-submit-{}", job_mark_)), manifest, kApplyPatience,
      [this, with_processes](const std::string& printed, const ExitStatus& status) {
        applier_ = -1;
        if (stopping_) return Delete();
        if (!status.ok()) {
          return events_.trouble(fmt::format("kubectl apply {}: {}", status.Describe(), OnOneLine(printed)));
        }
        processes_launched_ = with_processes;
        launched_at_ = Clock::now();
        Changed();
      });
}

// --- what the pods do ------------------------------------------------------------------------------------

void KubernetesCluster::Changed() {
  ask_pause_ = kAskSoon;
  AskLater();
}

void KubernetesCluster::AskLater() {
  ask_timer_.expires_after(ask_pause_);
  ask_pause_ = std::min(kAskLater, ask_pause_ + ask_pause_ / 2);
  ask_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) Ask();
  });
}

void KubernetesCluster::Ask() {
  if (stopping_ || !launched_ || asker_ >= 0) return;
  asker_ =
      kubectl_.Run(kubectl_.GetWords(start_), "", kAskPatience,
                   [this](const std::string& printed, const ExitStatus& status) {
                     asker_ = -1;
                     if (stopping_) return;
                     try {
                       if (!status.ok())
                         throw std::runtime_error(printed.empty() ? status.Describe() : OnOneLine(printed));
                       OnReport(ReadKubeReport(printed));
                       failed_asks_ = 0;
                     } catch (const std::runtime_error& error) {
                       OnFailedAsk(error.what());
                     }
                     if (!stopping_) AskLater();
                   });
}

/// Also a question under way: one that hangs would hold the end up.
void KubernetesCluster::StopAsking() {
  ask_timer_.cancel();
  if (asker_ >= 0) children_.Kill({asker_});
}

/// The API server may be away for a while, but nobody who may not ask will ever know.
void KubernetesCluster::OnFailedAsk(const std::string& why) {
  spdlog::debug("kubectl get: {}", why);
  if (why.find("Forbidden") != std::string::npos) return events_.trouble(fmt::format("kubectl get: {}", why));
  if (++failed_asks_ == kFailedAsks)
    spdlog::warn("nothing is known of the pods at the moment: kubectl get: {}", why);
}

void KubernetesCluster::OnReport(const KubeReport& report) {
  std::set<std::string> seen;
  for (const PodReport& pod : report.pods) {
    seen.insert(pod.name);
    OnPod(pod);
    if (stopping_) return;
    if (pod.role == HostRole(options_) && pod.has_begun && !processes_.empty()) {
      Apply(std::exchange(processes_, {}), true);
    }
  }
  for (const auto& [name, pod] : pods_) {
    if (seen.contains(name) || pod->settled) continue;
    pod->gone = true;
    if (pod->follower < 0) Settle(*pod);
    if (stopping_) return;
  }
  TellOfMissingPods();
  if (report.failed_job != failed_job_) Changed();
  failed_job_ = report.failed_job;
  if (processes_launched_ && report.jobs < num_jobs_) failed_job_ = "it was deleted";
  if (failed_job_.empty() || held_) return;
  const bool of_its_own = failed_job_.starts_with("DeadlineExceeded");
  if (of_its_own || ++asks_since_failure_ >= kAsksAboutFailure) {
    events_.trouble(fmt::format("job {} of Kubernetes has ended: {}", options_.job_name, failed_job_));
  }
}

void KubernetesCluster::TellOfMissingPods() {
  if (!launched_ || complained_of_pods_ || Clock::now() - launched_at_ < kPodPatience) return;
  const std::string role = processes_launched_ ? "worker" : HostRole(options_);
  const auto expected = static_cast<std::size_t>(role == "worker" ? options_.num_workers : 1);
  const auto found = static_cast<std::size_t>(
      std::count_if(pods_.begin(), pods_.end(), [&](const auto& pod) { return pod.second->role == role; }));
  if (found >= expected) return;
  complained_of_pods_ = true;
  spdlog::warn(
      "Kubernetes has made {} of {} pods for role {}; `kubectl describe jobs --selector {}={}` tells why",
      found, expected, role, kJobLabel, options_.job_name);
}

KubernetesCluster::Pod& KubernetesCluster::PodOf(const PodReport& report) {
  auto& known = pods_[report.name];
  if (known != nullptr) return *known;
  Changed();
  known = std::make_unique<Pod>(job_mark_);
  known->name = report.name;
  known->role = report.role;
  known->replaced = report.replaced;
  std::size_t rank = 0;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    if (tracker::RoleName(plan_[i].role) == report.role && rank++ == report.rank) known->index = i;
  }
  return *known;
}

void KubernetesCluster::OnPod(const PodReport& report) {
  Pod& pod = PodOf(report);
  if (pod.settled) return;
  TellWhatItWaitsFor(report);
  if (stopping_) return;
  if (report.has_begun != pod.has_begun) Changed();
  pod.has_begun = pod.has_begun || report.has_begun;
  if (report.ended) pod.ended = report.ended;
  if (pod.has_begun && pod.follower < 0 && !pod.log_is_over) return Follow(pod);
  if (pod.ended && (pod.log_is_over || !pod.has_begun)) Settle(pod);
}

/// Once for each reason: all pods of a job mostly wait for the same.
void KubernetesCluster::TellWhatItWaitsFor(const PodReport& report) {
  if (report.waits_for.empty()) return;
  const bool is_new = told_.insert(report.waits_for.substr(0, report.waits_for.find(':'))).second;
  const std::string what = fmt::format("pod {} waits: {}", report.name, OnOneLine(report.waits_for));
  if (report.never_begins) return events_.trouble(what);
  if (is_new) spdlog::info("{}", what);
}

void KubernetesCluster::Follow(Pod& pod) {
  std::vector<std::string> words =
      kubectl_.Words({"logs", "--follow", "--timestamps", pod.name, "--container", pod.role});
  if (!pod.log.since().empty()) words.push_back(fmt::format("--since-time={}", pod.log.since()));
  pod.log.Reconnect();
  pod.complaint.clear();
  if (pod.ended) ++pod.reads_after_the_end;
  spdlog::debug("{}", ShellCommand(words));
  try {
    pod.follower = children_.Start({words.front(), words, InheritedWith({}, {}), false},
                                   {[this, &pod](Stream stream, std::string_view bytes) {
                                      if (stream == Stream::kOut) return OnLog(pod, bytes);
                                      pod.complaint += bytes.substr(0, kLastWordsBytes);
                                    },
                                    [this, &pod](const ExitStatus& status) { OnFollowerExit(pod, status); }});
  } catch (const std::runtime_error& error) {
    events_.trouble(fmt::format("kubectl logs {}: {}", pod.name, error.what()));
  }
}

void KubernetesCluster::OnLog(Pod& pod, std::string_view bytes) {
  pod.failed_followers = 0;
  pod.log.Append(bytes, [&](std::string_view text) {
    if (!pod.index) {
      pod.lines.Append(text, [&](std::string_view line) {
        if (line.size() > 1) tracker_words_ = Trimmed(std::string(line));
        if (!stopping_) events_.said(kTrackerRole, Stream::kErr, line);
      });
      return;
    }
    pod.notes.Append(
        text, [&](std::string_view said) { events_.output(*pod.index, Stream::kOut, said); },
        [&](const Note& note) {
          if (note.index == *pod.index) OnNote(pod, note);
        });
  });
}

/// A log ends with its container; its connection may at any time.
void KubernetesCluster::OnFollowerExit(Pod& pod, const ExitStatus& status) {
  pod.follower = -1;
  TellWhenIdle();
  if (!pod.complaint.empty()) spdlog::debug("kubectl logs {}: {}", pod.name, Trimmed(pod.complaint));
  if (!status.ok() && ++pod.failed_followers == kFollowerTries) {
    spdlog::warn("the log of pod {} cannot be read: {}", pod.name, OnOneLine(pod.complaint));
  }
  const bool told = pod.index && places_.at(*pod.index).pod == pod.name && places_.at(*pod.index).last;
  const bool read = status.ok() && pod.ended && (told || pod.reads_after_the_end >= kReadsAfterTheEnd);
  const bool given_up = pod.ended && pod.failed_followers >= kFollowerTries;
  pod.log_is_over = read || given_up || pod.gone || stopping_;
  if (pod.log_is_over) return Settle(pod);
  Changed();
  const auto again = std::make_shared<asio::steady_timer>(io_, kFollowAgain);
  again->async_wait([this, again, start = start_](const boost::system::error_code&) {
    if (start == start_) Ask();
  });
}

/// Whether what this pod says of its process counts: it is the newest that has said something. What is then
/// known of the one before is all there will be.
bool KubernetesCluster::Adopt(Place& place, Pod& pod) {
  if (place.pod == pod.name) return true;
  if (!place.pod.empty() && pod.replaced <= place.replaced) return false;
  const auto before = pods_.find(place.pod);
  if (before != pods_.end() && !before->second->settled) {
    if (!before->second->ended) before->second->gone = true;
    Settle(*before->second);
    if (stopping_) return false;
  }
  place.pod = pod.name;
  place.replaced = pod.replaced;
  place.begun.reset();
  place.last.reset();
  return true;
}

void KubernetesCluster::OnNote(Pod& pod, const Note& note) {
  Place& place = places_.at(note.index);
  if (!Adopt(place, pod)) return;
  Changed();
  std::istringstream words(note.text);
  int attempt = 0;
  words >> attempt;
  if (note.kind == "start") {
    Started where;
    words >> where.pid;
    where.host = pod.name;
    place.begun = where;
    if (place.wanted && place.early.empty()) events_.located(note.index, where);
    return;
  }
  int code = 0;
  words >> code;
  if (note.kind == "again") EndAttempt(note.index, FromShellCode(code));
  if (note.kind == "exit")
    place.last = FromShellCode(code);  // what it wrote last comes when the container has ended
}

/// The pod has ended, and its log has been read as far as that goes.
void KubernetesCluster::Settle(Pod& pod) {
  if (std::exchange(pod.settled, true)) return;
  if (!pod.index) return SettleTracker(pod);
  const std::size_t index = *pod.index;
  pod.notes.Finish([&](std::string_view said) { events_.output(index, Stream::kOut, said); });
  Place& place = places_.at(index);
  if (!Adopt(place, pod)) return;
  if (place.last) return EndAttempt(index, *place.last);
  if (stopping_) return EndAttempt(index, kStopped);
  if (pod.ended) return EndAttempt(index, *pod.ended);
  EndAttempt(index, {kLost, 0, false, fmt::format("was lost: its pod {} was deleted", pod.name)});
}

void KubernetesCluster::SettleTracker(Pod& pod) {
  pod.lines.Finish([&](std::string_view line) { tracker_words_ = Trimmed(std::string(line)); });
  if (stopping_ || (pod.ended && pod.ended->ok())) return;
  std::string story = fmt::format("the tracker (pod {}) {}{}", pod.name,
                                  pod.ended ? pod.ended->Describe() : "was lost: its pod was deleted",
                                  tracker_words_.empty() ? "" : fmt::format(": {}", tracker_words_));
  if (pod.ended && pod.ended->ShellCode() == kNotFound) {
    story +=
        "; its image has to have Warren in it (--kube-tracker-image), or dmlc-submit runs the tracker "
        "itself, where the "
        "pods can reach it (--host-ip)";
  }
  events_.tracker_failed(story);
}

void KubernetesCluster::EndAttempt(std::size_t index, const ExitStatus& status) {
  Place& place = places_.at(index);
  place.begun.reset();
  place.last.reset();
  if (place.wanted) return End(index, status);
  if (!stopping_) place.early.push_back(status);
}

void KubernetesCluster::End(std::size_t index, const ExitStatus& status) {
  Place& place = places_.at(index);
  if (!std::exchange(place.wanted, false)) return;
  place.failed = !status.ok();
  const bool all_succeeded = std::all_of(places_.begin(), places_.end(), [](const auto& entry) {
    return !entry.second.wanted && !entry.second.failed;
  });
  if (stopping_ || !all_succeeded) return events_.exited(index, status);
  // The job is over when nothing of it is left.
  held_ = index;
  stopping_ = true;
  StopAsking();
  Delete();
}

// --- the end ---------------------------------------------------------------------------------------------

void KubernetesCluster::Delete() {
  if (applier_ >= 0 || std::exchange(deleting_, true)) return;
  TryToDelete(1);
}

void KubernetesCluster::TryToDelete(int attempt) {
  kubectl_.Run(kubectl_.DeleteWords(), "", kDeletePatience,
               [this, attempt](const std::string& printed, const ExitStatus& status) {
                 if (status.ok()) {
                   children_.SetFarewell(kObjects, "");  // nothing is left for the guardian
                   return OnDeleted();
                 }
                 spdlog::log(attempt == 1 ? spdlog::level::warn : spdlog::level::debug,
                             "kubectl delete {}: {}", status.Describe(), OnOneLine(printed));
                 if (attempt == kDeleteTries) {
                   spdlog::error("job {} may still be there; this deletes it: {}", options_.job_name,
                                 ShellCommand(kubectl_.DeleteWords()));
                   return OnDeleted();
                 }
                 delete_timer_.expires_after(kDeletePause);
                 delete_timer_.async_wait([this, attempt](const boost::system::error_code& error) {
                   if (!error) TryToDelete(attempt + 1);
                 });
               });
}

void KubernetesCluster::OnDeleted() {
  deleting_ = launched_ = false;
  TellWhenIdle();
  if (const auto held = std::exchange(held_, std::nullopt)) {
    // What is left of logs is that of the tracker.
    KillFollowers();
    events_.exited(*held, {});
  }
}

/// The pods are asked to end when their Jobs are deleted; what they say then comes by way of their logs.
void KubernetesCluster::Stop() {
  const bool already = std::exchange(stopping_, true);
  StopAsking();
  if (const auto held = std::exchange(held_, std::nullopt)) events_.exited(*held, {});
  if (already) return;
  end_timer_.expires_after(kEndPatience);
  end_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) EndAllPlaces();
  });
  const bool all_are_followed = std::all_of(places_.begin(), places_.end(),
                                            [this](const auto& place) { return IsFollowed(place.first); });
  if (!launched_ || !processes_launched_ || all_are_followed) return DeleteAndHear();
  // Some may have begun since kubectl was asked last.
  kubectl_.Run(kubectl_.GetWords(start_), "", kLastAskPatience,
               [this](const std::string& printed, const ExitStatus& status) {
                 if (status.ok() && !deleting_) FollowAll(printed);
                 DeleteAndHear();
               });
}

bool KubernetesCluster::IsFollowed(std::size_t index) const {
  return std::any_of(pods_.begin(), pods_.end(), [index](const auto& pod) {
    return pod.second->index == index && pod.second->follower >= 0;
  });
}

void KubernetesCluster::FollowAll(const std::string& printed) {
  try {
    for (const PodReport& report : ReadKubeReport(printed).pods) {
      Pod& pod = PodOf(report);
      if (report.has_begun && pod.index && pod.follower < 0 && !pod.log_is_over) Follow(pod);
    }
  } catch (const std::runtime_error& error) {
    spdlog::debug("kubectl get: {}", error.what());
  }
}

void KubernetesCluster::DeleteAndHear() {
  if (launched_) Delete();
  for (auto& [index, place] : places_) {
    if (!IsFollowed(index)) End(index, kStopped);
  }
}

void KubernetesCluster::KillFollowers() {
  std::set<pid_t> followers;
  for (const auto& [name, pod] : pods_) {
    if (pod->follower >= 0) followers.insert(pod->follower);
  }
  children_.Kill(followers);
}

void KubernetesCluster::EndAllPlaces() {
  KillFollowers();
  for (auto& [index, place] : places_) End(index, kStopped);
}

void KubernetesCluster::Kill() {
  if (applier_ >= 0) children_.Kill({applier_});
  EndAllPlaces();
}

std::string ShowKubernetes(const Options& options, const std::vector<PlannedProcess>& plan) {
  const KubeJob job{&options, &plan, 0, 0, "", kSecondsUntilItBegins, PlanShipment(options)};
  if (options.kube_trainjob) return WriteYaml(MakeTrainJob(job));
  KubeManifest manifest = MakeKubeManifest(job);
  manifest.before.insert(manifest.before.end(), manifest.processes.begin(), manifest.processes.end());
  return WriteYaml(manifest.before);
}

}  // namespace warren::submit
