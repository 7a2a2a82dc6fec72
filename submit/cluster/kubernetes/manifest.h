// Makes the Kubernetes objects of a job from the options and a plan. The only I/O is reading templates and
// the files to ship.
//
// Each role in the plan has a Job (an Indexed Job for workers and servers) whose pods run a script (script.h)
// from a Secret, which contains the command and the environment byte for byte. The tracker has another Job,
// if it runs in a pod, and a Secret with the job's token. A headless Service gives the pod of the tracker or
// scheduler its name, and another Secret contains the shipped files.
#pragma once

#include <string>
#include <vector>

#include "submit/cluster/kubernetes/yaml.h"
#include "submit/cluster/shipping.h"
#include "submit/options/options.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

/// Labels of the objects: the job, the start of the job and, if the object belongs to a role, the role.
inline constexpr char kJobLabel[] = "dmlc-submit/job";
inline constexpr char kStartLabel[] = "dmlc-submit/start";
inline constexpr char kRoleLabel[] = "dmlc-submit/role";
inline constexpr char kTrackerRole[] = "tracker";

/// The annotation with a pod's index in its Indexed Job.
inline constexpr char kIndexAnnotation[] = "batch.kubernetes.io/job-completion-index";
/// The annotation with the number of pods of that index that have failed before.
inline constexpr char kReplacedAnnotation[] = "batch.kubernetes.io/job-index-failure-count";
/// In an elastic job, the annotation with the number of earlier pods of that index that Kubernetes itself
/// ended.
inline constexpr char kDisruptedAnnotation[] = "batch.kubernetes.io/job-index-ignored-failure-count";

/// A name for the job that Kubernetes accepts, made from --jobname or the command. If the job is to run, i.e.
/// without --kube-manifest and --dry-run, the name has a random suffix, so that several jobs of one name can
/// run.
std::string KubernetesJobName(const Options& options);

/// The role of the pod whose address all others are given, which runs the tracker or the scheduler; empty if
/// the job has no such pod.
std::string HostRole(const Options& options);
/// Whether the tracker is one of the job's pods.
bool TrackerIsAPod(const Options& options);
/// The name by which the processes of start number `start` (from 0) reach the pod of the tracker or
/// scheduler.
std::string KubernetesHost(const Options& options, int start);
/// The port of the tracker or scheduler in its pod: --port or, if that is 0, its default.
std::uint16_t KubernetesPort(const Options& options);

struct KubeJob {
  const Options* options = nullptr;  ///< options->job_name must be from KubernetesJobName
  const std::vector<PlannedProcess>* plan = nullptr;
  int start = 0;         ///< number of earlier starts of the job
  int attempt = 0;       ///< attempt number of the processes in their first pods
  std::string job_mark;  ///< mark of the messages of the scripts in the pods; if empty, they write none
  /// Maximum time that the pods wait for the name of the tracker's or scheduler's pod to resolve.
  int seconds_to_be_known = 0;
  Shipment shipment;
};

struct KubeManifest {
  /// The objects that the pods need, including the Job of the pod whose address they are given.
  std::vector<Json> before;
  std::vector<Json> processes;  ///< a Job for each other role
};

/// Makes the objects of a job. Throws UsageError or std::runtime_error if a template, a file to ship or an
/// option is invalid, or if the command or the files are too big for Kubernetes.
KubeManifest MakeKubeManifest(const KubeJob& job);

/// Makes the objects of the same job for the XGBoost runtime of Kubeflow Trainer, which gives the pods their
/// numbers and the tracker's address. The first pod runs the tracker, unless --no-tracker is given. Throws
/// like MakeKubeManifest.
std::vector<Json> MakeTrainJob(const KubeJob& job);

}  // namespace warren::submit
