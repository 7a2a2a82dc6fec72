#include "submit/cluster/kubernetes/entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

#include "submit/cluster/kubernetes/kubernetes.h"
#include "submit/cluster/kubernetes/manifest.h"
#include "submit/options/values.h"
#include "submit/output/console.h"
#include "submit/process/command.h"
#include "submit/process/whole_file.h"

namespace warren::submit {
namespace {

/// The maximum size of a Secret in bytes.
constexpr std::uintmax_t kMostInASecret = std::uintmax_t{1} << 20;
/// Options that have no effect on a TrainJob, because Kubeflow's runtime makes these settings itself or does
/// not support them.
constexpr std::array<std::string_view, 9> kNotInTrainJobs = {"--kube-worker-template",
                                                             "--kube-server-template",
                                                             "--kube-tracker-template",
                                                             "--kube-server-image",
                                                             "--kube-tracker-image",
                                                             "--queue",
                                                             "--time-limit",
                                                             "--host-ip",
                                                             "--port"};

void CheckOptions(const Options& options) {
  if (options.min_workers && options.kube_trainjob) {
    throw UsageError(fmt::format(
        "--num-workers {}:{}: --kube-kind trainjob cannot go on without a worker, as Kubeflow's XGBoost runtime replaces none; use --kube-kind job, or give one number",
        *options.min_workers, options.num_workers));
  }
  if (options.kube_worker_image.empty()) {
    throw UsageError("--kube-worker-image IMAGE is missing: the container image that the workers run in");
  }
  if (options.detach && !options.kube_manifest.empty()) {
    throw UsageError(
        "--detach: with --kube-manifest FILE there is no job that could continue; give one of the two");
  }
  if (options.kube_trainjob && options.kube_manifest.empty() && !options.dry_run) {
    throw UsageError(
        "--kube-kind trainjob needs --kube-manifest FILE: Kubeflow Trainer runs the job, not dmlc-submit");
  }
}

void WriteManifest(const std::string& path, const std::string& text) {
  WritePrivateFile(path, text, O_TRUNC);
  spdlog::info("wrote the manifest '{}'; start the job with: kubectl apply --server-side -f {}", path,
               ShellQuote(path));
}

bool ExportJob(const Options& options, const std::string& shown, Console& console) {
  if (options.kube_manifest.empty()) return false;
  if (options.kube_manifest == "-") {
    console.Print(shown);
  } else {
    WriteManifest(options.kube_manifest, shown);
  }
  return true;
}

}  // namespace

ClusterEntry KubernetesEntry() {
  ClusterEntry entry;
  entry.name = "kubernetes";
  entry.may_lose_workers = entry.replaces_workers = true;
  entry.where = "pods";
  entry.make = MakeKubernetesCluster;
  entry.show = [](const Options& options, const std::vector<PlannedProcess>& plan, const std::string&) {
    return ShowKubernetes(options, plan);
  };
  entry.host = [](const Options&) { return JobHost(); };  // called only if there is no tracker to connect to
  entry.experimental = true;
  entry.has_own_directories = true;
  entry.max_file_bytes = kMostInASecret;
  entry.own_tracker = [](const Options& options, int start) {
    if (HostRole(options).empty()) return JobHost();
    return JobHost{KubernetesHost(options, start), {}, KubernetesPort(options)};
  };
  entry.ignores = [](const Options& options, std::string_view name) {
    if (name == "--kube-tracker-image" || name == "--kube-tracker-template") return !TrackerIsAPod(options);
    if (name == "--host-ip" && options.num_servers > 0) return true;  // the scheduler is a pod
    // Without a tracker and a scheduler, the pods connect to no one.
    if ((name == "--host-ip" || name == "--port") && options.no_tracker && options.num_servers == 0)
      return true;
    if (name == "--timeline" && !HostRole(options).empty()) return true;  // no reports reach dmlc-submit
    return options.kube_trainjob &&
           std::find(kNotInTrainJobs.begin(), kNotInTrainJobs.end(), name) != kNotInTrainJobs.end();
  };
  entry.check = CheckOptions;
  entry.complete = [](Options& options) {
    options.job_name = KubernetesJobName(options);
    if (options.kube_trainjob) options.auto_file_cache = false;  // files cannot be shipped with a TrainJob
  };
  entry.export_job = ExportJob;
  entry.bound_by =
      "nodes whose kubelet has the CPU manager policy 'static': it gives cores of its own to each container whose template sets limits equal to its requests";
  entry.shared_options = {"--worker-memory", "--server-cores", "--server-memory",  "--worker-gpus",
                          "--time-limit",    "--queue",        "--auto-file-cache"};
  entry.own_options = {
      {"--kube-namespace", "NAME", "the namespace of kubectl's context", "Namespace of the job.",
       Text<&Options::kube_namespace>},
      {"--kube-worker-image", "IMAGE", "",
       "Container image of the workers; it needs a POSIX shell. Required.",
       Text<&Options::kube_worker_image>},
      {"--kube-server-image", "IMAGE", "the workers'",
       "Container image of the parameter servers and their scheduler.", Text<&Options::kube_server_image>},
      {"--kube-tracker-image", "IMAGE", "the workers'",
       "Container image of the tracker's pod, with rabit-tracker on its PATH. With --host-ip there is no such pod.",
       Text<&Options::kube_tracker_image>},
      {"--kube-worker-template", "FILE", "",
       "YAML manifest of a Job or a Pod, merged over the generated manifest of the workers.",
       Text<&Options::kube_worker_template>},
      {"--kube-server-template", "FILE", "",
       "Like --kube-worker-template, for the parameter servers and their scheduler.",
       Text<&Options::kube_server_template>},
      {"--kube-tracker-template", "FILE", "",
       "Like --kube-worker-template, for the tracker. The tracker also uses the image secrets, the account and the security context of the workers' template.",
       Text<&Options::kube_tracker_template>},
      {"--kube-manifest", "FILE", "",
       "Write the manifest of the job to FILE (- means standard output), and start nothing.",
       Text<&Options::kube_manifest>},
      {"--kube-kind", "job|trainjob", "job",
       "Kind of object: Indexed Jobs or, with --kube-manifest, a TrainJob for Kubeflow Trainer.",
       OneOf(&Options::kube_trainjob, {{"job", false}, {"trainjob", true}})},
      {"--kube-runtime", "NAME", "xgboost-distributed", "Runtime that a TrainJob refers to.",
       Text<&Options::kube_runtime>},
      {"--kube-args", "WORDS", "", "More options for kubectl, such as '--context prod'.",
       Words<&Options::kube_args>, true},
  };
  return entry;
}

}  // namespace warren::submit
