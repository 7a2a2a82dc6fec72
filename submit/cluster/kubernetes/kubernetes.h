// --cluster kubernetes: the processes run in the pods of Indexed Jobs, and the tracker, unless --host-ip is
// given, in its own pod. The only tool needed is kubectl (kubectl.h), which creates the objects (manifest.h),
// reports the state of the pods (pods.h), follows their logs (log_reader.h), which contain the messages of
// the scripts in the pods (scripts/pod.sh), and deletes everything at the end. The controller (controller.h)
// makes the decisions; this file runs the commands and the timer. If dmlc-submit dies, its watchdog deletes
// the objects.
//
// A process that fails is restarted by its script, in its pod; a pod that is lost is replaced by Kubernetes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <string>
#include <vector>

#include "submit/cluster/action_loop.h"
#include "submit/cluster/cluster.h"
#include "submit/cluster/kubernetes/controller.h"
#include "submit/cluster/kubernetes/kubectl.h"
#include "submit/options/options.h"
#include "submit/process/children.h"

namespace warren::submit {

class KubernetesCluster : public Cluster {
 public:
  /// Throws std::runtime_error if kubectl is not found.
  KubernetesCluster(boost::asio::io_context& io, Children& children, const Options& options,
                    ClusterEvents events);
  ~KubernetesCluster() override;

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

  boost::asio::io_context& io_;
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

/// Makes the output of --dry-run and --kube-manifest. Throws like MakeKubeManifest and MakeTrainJob.
std::string ShowKubernetes(const Options& options, const std::vector<PlannedProcess>& plan);

}  // namespace warren::submit
