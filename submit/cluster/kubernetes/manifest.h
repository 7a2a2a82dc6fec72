// The objects of Kubernetes that a job is made of. Pure: options and a plan in, objects out.
//
// Per role an Indexed Job whose pods run a script (script.h) out of a Secret, which holds the command and the
// environment byte for byte; a headless Service that gives the tracker's pod, or the scheduler's, its name; a
// Secret with the files that are shipped.
#pragma once

#include <string>
#include <vector>

#include "submit/cluster/kubernetes/yaml.h"
#include "submit/options.h"
#include "submit/plan.h"
#include "submit/shipping.h"

namespace warren::submit {

/// What all objects of the job are marked with, and each start of it.
inline constexpr char kJobLabel[] = "dmlc-submit/job";
inline constexpr char kStartLabel[] = "dmlc-submit/start";
inline constexpr char kRoleLabel[] = "dmlc-submit/role";
inline constexpr char kTrackerRole[] = "tracker";

/// How Kubernetes counts the pods of an Indexed Job.
inline constexpr char kIndexAnnotation[] = "batch.kubernetes.io/job-completion-index";
/// And how many of an index have failed before.
inline constexpr char kReplacedAnnotation[] = "batch.kubernetes.io/job-index-failure-count";

/// A name for the job that Kubernetes takes, made of --jobname or the command; with an ending of its own, so
/// that several of one name can run, unless only a manifest is written.
std::string KubernetesJobName(const Options& options);

/// The role of the pod that all others are told about, the tracker's or the scheduler's; empty: there is
/// none.
std::string HostRole(const Options& options);
/// True where the tracker is one of the job's pods.
bool TrackerIsAPod(const Options& options);
/// The name under which the processes of the `start`th start (from 0) find the tracker's pod, or the
/// scheduler's.
std::string KubernetesHost(const Options& options, int start);
std::uint16_t KubernetesPort(const Options& options);

struct KubeJob {
  const Options* options = nullptr;  ///< job_name is KubernetesJobName's
  const std::vector<PlannedProcess>* plan = nullptr;
  int start = 0;
  int attempt = 0;
  std::string job_mark;  ///< of the agents' messages; empty: they write none
  int seconds_to_be_known =
      0;  ///< how long the pods wait until the name of the one they are told about is known
  Shipment shipment;
};

struct KubeManifest {
  std::vector<Json> before;     ///< what the pods need, and the pod they are told about
  std::vector<Json> processes;  ///< a Job for each other role
};

/// Throws UsageError or std::runtime_error for what Kubernetes cannot take.
KubeManifest MakeKubeManifest(const KubeJob& job);

/// The same job for Kubeflow Trainer's XGBoost runtime, which gives the pods their numbers and the tracker's
/// address; the first of them runs the tracker. Throws like MakeKubeManifest.
std::vector<Json> MakeTrainJob(const KubeJob& job);

}  // namespace warren::submit
