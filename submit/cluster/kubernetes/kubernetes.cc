#include "submit/cluster/kubernetes/kubernetes.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <map>
#include <stdexcept>
#include <utility>

#include "submit/cluster/action_loop.h"
#include "submit/cluster/agent_messages.h"
#include "submit/cluster/kubernetes/controller.h"
#include "submit/cluster/kubernetes/kubectl.h"
#include "submit/cluster/kubernetes/manifest.h"
#include "submit/cluster/kubernetes/pods.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

/// Time limits for kubectl: for a query, for the last query before the end, for a deletion, and for the
/// creation of objects.
constexpr std::chrono::seconds kAskPatience{20};
constexpr std::chrono::seconds kLastAskPatience{2};
constexpr std::chrono::seconds kDeletePatience{10};
constexpr std::chrono::seconds kApplyPatience{120};
/// Maximum number of seconds that pods wait for the name of the tracker's or scheduler's pod to resolve. The
/// first value is for jobs that dmlc-submit runs: it creates that pod first. The second is for manifests:
/// that pod may begin much later than others.
constexpr int kSecondsToBeKnown = 20;
constexpr int kSecondsUntilItBegins = 600;
/// Key for the cleanup of the job's objects.
constexpr char kObjects[] = "objects of Kubernetes";

KubernetesSetting SettingOf(const Options& options, const Kubectl& kubectl, const std::string& job_mark) {
  const auto workers = static_cast<std::size_t>(options.num_workers);
  const auto servers = static_cast<std::size_t>(options.num_servers);
  return {.job_name = options.job_name,
          .kube_namespace = options.kube_namespace,
          .job_mark = job_mark,
          .host_role = HostRole(options),
          .num_workers = workers,
          .num_processes = workers + servers + (servers > 0 ? 1 : 0),
          .delete_command = ShellCommand(kubectl.DeleteWords()),
          .is_elastic = options.min_workers.has_value()};
}

class KubernetesCluster : public Cluster {
 public:
  explicit KubernetesCluster(ClusterContext context);

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  bool busy() const override { return kubectl_.busy() || controller_.busy(); }
  bool runs_scheduler() const override { return true; }
  bool work_is_done() const override { return controller_.work_is_done(); }
  void WorkersFinished() override;

 private:
  void Do(const MakeObjects& make);
  void Do(const ApplyObjects& apply);
  void Do(const AskForPods& ask);
  void Do(const FollowLog& follow);
  void Do(const DeleteObjects& action);
  void Do(const SetDeletion& deletion);
  void Do(const KillAsk& action);
  void Do(const KillApply& action);
  void Do(const KillFollower& kill);
  void Do(const ClusterEvent& event);
  void OnAnswer(const std::string& printed, const ExitStatus& status, bool at_the_end);
  void TellWhenIdle();

  asio::io_context& io_;
  Children& children_;
  const Options& options_;
  ClusterEvents events_;
  Kubectl kubectl_;
  std::string job_mark_;
  KubernetesController controller_;
  std::vector<PlannedProcess> plan_;
  std::string before_;     ///< the manifests of ApplyObjects::before
  std::string processes_;  ///< the manifests of ApplyObjects::processes
  pid_t applier_ = -1;     ///< the kubectl that creates objects
  pid_t asker_ = -1;       ///< the kubectl that queries the pods
  ActionLoop<KubernetesController, KubernetesAction> loop_;
  std::map<std::string, pid_t> followers_;  ///< each kubectl that follows a log, by pod
};

KubernetesCluster::KubernetesCluster(ClusterContext context)
    : io_(context.io),
      children_(context.children),
      options_(context.options),
      events_(std::move(context.events)),
      kubectl_(io_, children_, options_, [this] { TellWhenIdle(); }),
      job_mark_(NewJobMark()),
      controller_(SettingOf(options_, kubectl_, job_mark_)),
      loop_(io_, controller_, [this](const auto& action) { Do(action); }) {}

void KubernetesCluster::TellWhenIdle() {
  asio::post(io_, [this] {
    if (!busy()) events_.idle();
  });
}

Started KubernetesCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  plan_.resize(std::max(plan_.size(), index + 1));
  plan_[index] = process;
  controller_.Start(index, tracker::RoleName(process.role), attempt, steady_clock::now());
  loop_.RunSoon();
  return {};
}

void KubernetesCluster::Stop() {
  controller_.Stop(steady_clock::now());
  loop_.RunSoon();
}

void KubernetesCluster::Kill() {
  controller_.Kill();
  loop_.RunSoon();
}

void KubernetesCluster::WorkersFinished() {
  controller_.WorkersFinished(steady_clock::now());
  loop_.RunSoon();
}

// --- actions ---------------------------------------------------------------------------------------------

void KubernetesCluster::Do(const MakeObjects& make) {
  KubeManifest manifest;
  try {
    manifest = MakeKubeManifest(
        {&options_, &plan_, make.start, make.attempt, job_mark_, kSecondsToBeKnown, PlanShipment(options_)});
  } catch (const std::runtime_error& error) {
    return controller_.NotMade(error.what());
  }
  before_ = WriteYaml(manifest.before);
  processes_ = WriteYaml(manifest.processes);
  controller_.Made(
      manifest.processes.size() +
      static_cast<std::size_t>(std::count_if(manifest.before.begin(), manifest.before.end(),
                                             [](const Json& object) { return object["kind"] == "Job"; })));
}

void KubernetesCluster::Do(const ApplyObjects& apply) {
  const std::string objects = (apply.before ? before_ : "") + (apply.processes ? processes_ : "");
  applier_ = kubectl_.Run(kubectl_.ApplyWords(fmt::format("dmlc-submit-{}", job_mark_)), objects,
                          kApplyPatience, [this](const std::string& printed, const ExitStatus& status) {
                            applier_ = -1;
                            controller_.Applied(printed, status, steady_clock::now());
                            loop_.Run();
                          });
}

void KubernetesCluster::Do(const AskForPods& ask) {
  const pid_t pid =
      kubectl_.Run(kubectl_.GetWords(ask.start), "", ask.at_the_end ? kLastAskPatience : kAskPatience,
                   [this, at_the_end = ask.at_the_end](const std::string& printed, const ExitStatus& status) {
                     if (!at_the_end) asker_ = -1;
                     OnAnswer(printed, status, at_the_end);
                     loop_.Run();
                   });
  if (!ask.at_the_end) asker_ = pid;
}

void KubernetesCluster::OnAnswer(const std::string& printed, const ExitStatus& status, bool at_the_end) {
  const TimePoint now = steady_clock::now();
  if (!status.ok()) {
    return controller_.NotReported(printed.empty() ? status.Describe() : printed, at_the_end, now);
  }
  KubeReport report;
  try {
    report = ReadKubeReport(printed);
  } catch (const std::runtime_error& error) {
    return controller_.NotReported(error.what(), at_the_end, now);
  }
  controller_.Reported(report, at_the_end, now);
}

void KubernetesCluster::Do(const FollowLog& follow) {
  std::vector<std::string> words =
      kubectl_.Words({"logs", "--follow", "--timestamps", follow.pod, "--container", follow.container});
  if (!follow.since.empty()) words.push_back(fmt::format("--since-time={}", follow.since));
  spdlog::debug("{}", ShellCommand(words));
  const auto on_output = [this, pod = follow.pod](Stream stream, std::string_view bytes) {
    if (stream == Stream::kErr) return controller_.LogComplained(pod, bytes);
    controller_.LogRead(pod, bytes, steady_clock::now());
    loop_.Run();
  };
  const auto on_exit = [this, pod = follow.pod](const ExitStatus& status) {
    followers_.erase(pod);
    controller_.FollowerExited(pod, status, steady_clock::now());
    TellWhenIdle();
    loop_.Run();
  };
  try {
    followers_[follow.pod] =
        children_.Start({words.front(), words, InheritedWith({}, {}), false}, {on_output, on_exit});
  } catch (const std::runtime_error& error) {
    controller_.NotFollowed(follow.pod, error.what());
  }
}

void KubernetesCluster::Do(const DeleteObjects&) {
  kubectl_.Run(kubectl_.DeleteWords(), "", kDeletePatience,
               [this](const std::string& printed, const ExitStatus& status) {
                 controller_.Deleted(printed, status, steady_clock::now());
                 TellWhenIdle();
                 loop_.Run();
               });
}

void KubernetesCluster::Do(const SetDeletion& deletion) {
  children_.SetCleanupCommand(kObjects, deletion.left ? kubectl_.CleanupCommand() : "");
  events_.keeps(deletion.left ? std::vector<KeptJob>{{fmt::format("the objects of job {} on Kubernetes",
                                                                  options_.job_name),
                                                      kubectl_.ShowWords(), kubectl_.DeleteWords()}}
                              : std::vector<KeptJob>());
}

void KubernetesCluster::Do(const KillAsk&) {
  children_.Kill({asker_});
}

void KubernetesCluster::Do(const KillApply&) {
  children_.Kill({applier_});
}

void KubernetesCluster::Do(const KillFollower& kill) {
  const auto found = followers_.find(kill.pod);
  if (found != followers_.end()) children_.Kill({found->second});
}

void KubernetesCluster::Do(const ClusterEvent& event) {
  Deliver(event, events_);
}

}  // namespace

std::unique_ptr<Cluster> MakeKubernetesCluster(ClusterContext context) {
  return std::make_unique<KubernetesCluster>(std::move(context));
}

std::string ShowKubernetes(const Options& options, const std::vector<PlannedProcess>& plan) {
  const KubeJob job{&options, &plan, 0, 0, "", kSecondsUntilItBegins, PlanShipment(options)};
  if (options.kube_trainjob) return WriteYaml(MakeTrainJob(job));
  KubeManifest manifest = MakeKubeManifest(job);
  manifest.before.insert(manifest.before.end(), manifest.processes.begin(), manifest.processes.end());
  return WriteYaml(manifest.before);
}

}  // namespace warren::submit
