// --cluster kubernetes: the processes run in the pods of Indexed Jobs, and the tracker, unless --host-ip is
// given, in its own pod. The only tool needed is kubectl (kubectl.h), which creates the objects (manifest.h),
// reports the state of the pods (pods.h), follows their logs (log_reader.h), which contain the messages of
// the scripts in the pods (scripts/pod.sh), and deletes everything at the end. The controller (controller.h)
// makes the decisions; this file runs the commands and the timer. If dmlc-submit dies, its watchdog deletes
// the objects.
//
// A process that fails is restarted by its script, in its pod; a pod that is lost is replaced by Kubernetes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/options/options.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

/// Throws std::runtime_error if kubectl is not found.
std::unique_ptr<Cluster> MakeKubernetesCluster(ClusterContext context);

/// Makes the output of --dry-run and --kube-manifest. Throws like MakeKubeManifest and MakeTrainJob.
std::string ShowKubernetes(const Options& options, const std::vector<PlannedProcess>& plan);

}  // namespace warren::submit
