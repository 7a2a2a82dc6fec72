#include "submit/cluster/kubernetes/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <random>
#include <string_view>

#include "submit/cluster/core_choice.h"
#include "submit/cluster/kubernetes/template.h"
#include "submit/cluster/script.h"
#include "submit/options/job_name.h"
#include "submit/process/command.h"
#include "submit/process/whole_file.h"
#include "wire/job_token.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;

/// The maximum length of the job's name. It leaves space for a suffix such as "-2-scheduler-10000": names in
/// Kubernetes may have at most 63 characters.
constexpr std::size_t kMaxNameBytes = 40;
constexpr std::size_t kSuffixBytes = 5;
constexpr std::size_t kMaxSecretBytes = std::size_t{1} << 20;
constexpr int kGraceSeconds = 3;
/// The time that a worker of an elastic job has to finish its round after it was told to end.
constexpr int kElasticGraceSeconds = 30;
/// The maximum number of times that a failed pod of an elastic job is replaced; pods that Kubernetes has
/// ended do not count. Also the maximum number of times that a killed worker is restarted in its first pod;
/// each later pod has one less.
constexpr int kElasticRestarts = 2;
/// The time after the end of an elastic job for which its tracker still answers workers that arrive late,
/// from pods that were being replaced.
constexpr int kLingerSeconds = 600;
/// A Job that dmlc-submit does not delete is deleted by Kubernetes a day after its end.
constexpr int kKeptSeconds = 86400;
constexpr std::string_view kScriptPath = "/dmlc-submit/script";
constexpr std::string_view kFilesPath = "/dmlc-submit/files";
constexpr std::string_view kScriptName = "process.sh";
constexpr std::string_view kReplacedVariable = "DMLC_SUBMIT_REPLACED";
constexpr std::string_view kDisruptedVariable = "DMLC_SUBMIT_DISRUPTED";
/// Exit codes of a container that was killed from outside (SIGKILL, SIGTERM). In a job that is not elastic,
/// only pods with these codes, and pods that Kubernetes has ended, are replaced.
constexpr std::array<int, 2> kKilledFromOutside = {137, 143};
/// The range of the exit codes of a container whose process was killed by a signal, as in FromShellCode. In
/// an elastic job, pods with these codes are replaced.
constexpr int kFirstSignalCode = 129, kLastSignalCode = 159;

bool IsUtf8(std::string_view text) {
  try {
    static_cast<void>(Json(std::string(text)).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string Base64(std::string_view bytes) {
  namespace iterators = boost::archive::iterators;
  using Encoded =
      iterators::base64_from_binary<iterators::transform_width<std::string_view::const_iterator, 6, 8>>;
  std::string text(Encoded(bytes.begin()), Encoded(bytes.end()));
  text.append((3 - bytes.size() % 3) % 3, '=');
  return text;
}

/// Converts text to a name that begins with a letter and consists of lowercase letters, digits and dashes.
std::string AsName(const std::string& text) {
  std::string name;
  for (const unsigned char c : text) {
    const char small = static_cast<char>(std::tolower(c));
    const bool fits = std::isalnum(c) != 0 && c < 0x80;
    if (fits) {
      name += small;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.empty() || std::isalpha(static_cast<unsigned char>(name.front())) == 0) name.insert(0, "job-");
  return name;
}

std::string WithoutDashAtTheEnd(std::string name) {
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

std::string NameOfStart(const Options& options, int start) {
  return start == 0 ? options.job_name : fmt::format("{}-{}", options.job_name, start + 1);
}

std::string ImageOf(const Options& options, const std::string& role) {
  if (role == kTrackerRole && !options.kube_tracker_image.empty()) return options.kube_tracker_image;
  const bool for_servers = role == "server" || role == "scheduler";
  if (for_servers && !options.kube_server_image.empty()) return options.kube_server_image;
  return options.kube_worker_image;
}

/// The value of --admit for the tracker in its pod. Since no worker runs there, "user" becomes "token". The
/// hosts cannot be listed, since the addresses of pods are not known before they run, so "hosts" becomes
/// "any".
std::string_view NameOf(tracker::Admit admit) {
  switch (admit) {
    case tracker::Admit::kToken:
    case tracker::Admit::kUser:
      return "token";
    case tracker::Admit::kHosts:
    case tracker::Admit::kAny:
      break;
  }
  return "any";
}

/// The value of --num-workers for the tracker: "3", or "2:3" in an elastic job.
std::string NumWorkers(const Options& options) {
  return (options.min_workers ? fmt::format("{}:", *options.min_workers) : "") +
         std::to_string(options.num_workers);
}

/// The command line of the tracker. `num_workers` and `port` may be shell variables.
std::string TrackerCommand(const Options& options, const std::string& num_workers, const std::string& port) {
  const auto seconds = [](std::chrono::milliseconds time) {
    return static_cast<double>(time.count()) / 1000;
  };
  const std::string elastic =
      options.min_workers
          ? fmt::format(" --replace-within {} --linger {}", seconds(options.replace_within), kLingerSeconds)
          : "";
  return fmt::format(
      "rabit-tracker --num-workers {} --host-ip 0.0.0.0 --port {} --port-end {} --sortby {} --timeout {} --admit {}{}{}",
      num_workers, port, port, options.sort_by == tracker::SortBy::kTask ? "task" : "host",
      seconds(options.timeout), NameOf(options.admit), options.tls ? " --tls" : "", elastic);
}

/// Parses a time limit in seconds, the unit of Kubernetes. Throws UsageError if it is not a positive integer.
int Seconds(const std::string& time_limit) {
  int seconds = 0;
  const auto [end, error] =
      std::from_chars(time_limit.data(), time_limit.data() + time_limit.size(), seconds);
  if (error != std::errc{} || end != time_limit.data() + time_limit.size() || seconds < 1) {
    throw UsageError(
        fmt::format("--time-limit: '{}' is not a number of seconds, as Kubernetes needs it", time_limit));
  }
  return seconds;
}

class Maker {
 public:
  explicit Maker(const KubeJob& job)
      : job_(job), options_(*job.options), name_(NameOfStart(*job.options, job.start)), files_(PodFiles()) {}

  KubeManifest Make() {
    KubeManifest manifest;
    const std::string host = HostRole(options_);
    if (!host.empty()) manifest.before.push_back(HeadlessService());
    if (!files_.empty()) manifest.before.push_back(SecretOfFiles());
    if (host == kTrackerRole) {
      if (!Token().empty()) manifest.before.push_back(SecretOfToken());
      manifest.before.push_back(TrackerJob());
    }
    const std::vector<PlannedProcess>& plan = *job_.plan;
    for (std::size_t first = 0; first < plan.size();) {
      std::size_t end = first;
      while (end < plan.size() && plan[end].role == plan[first].role) ++end;
      const std::string role = tracker::RoleName(plan[first].role);
      manifest.before.push_back(Secret(role, Script(first, role)));
      (role == host ? manifest.before : manifest.processes).push_back(JobOfRole(role, end - first));
      first = end;
    }
    return manifest;
  }

  std::vector<Json> MakeTrainJob() {
    if (options_.num_servers > 0) {
      throw UsageError(
          "--kube-kind trainjob: Kubeflow's XGBoost runtime has no parameter servers (--num-servers)");
    }
    if (!files_.empty()) {
      throw UsageError(
          "--kube-kind trainjob: files cannot be shipped (--files, --archives); put them into the image or a volume");
    }
    const PlannedProcess& process = job_.plan->front();
    if (options_.worker_gpus > 1) {
      throw UsageError(
          "--kube-kind trainjob: Kubeflow's XGBoost runtime runs one worker per GPU, so --worker-gpus must be 0 or 1");
    }
    PodScriptContext context{job_.job_mark, "$DMLC_TASK_ID", 0, 0, options_.num_restarts};
    if (!options_.no_tracker) {
      context.tracker = TrackerCommand(options_, "$DMLC_NUM_WORKER", "$DMLC_TRACKER_PORT");
      context.awaited = context.master = "$DMLC_TRACKER_URI";
      context.seconds_to_be_known = job_.seconds_to_be_known;
    }
    PlannedProcess one = process;
    // Kubeflow's runtime sets the variables that are removed here.
    one.environment = WithoutTask(std::move(one.environment));
    std::erase_if(one.environment, [](const auto& entry) {
      return entry.first.starts_with("DMLC_TRACKER_") || entry.first == "DMLC_NUM_WORKER";
    });
    const std::string script = PodScript(one, context);
    if (!IsUtf8(script)) {
      throw UsageError(
          "--kube-kind trainjob: Kubernetes accepts only UTF-8 in arguments and the environment");
    }
    const ScriptInEnvironment in_environment = InEnvironment(script);
    Json secret = Object("v1", "Secret", name_, "worker");
    Json environment = Json::array();
    for (const auto& [name, value] : in_environment.variables) {
      AddContent(secret, name, value);
      environment.push_back(
          {{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", name_}, {"key", name}}}}}});
    }
    Json train_job = Object("trainer.kubeflow.org/v1alpha1", "TrainJob", name_, "worker");
    Json trainer = {{"image", ImageOf(options_, "worker")}, {"numNodes", options_.num_workers}};
    trainer["command"] = Json::array();
    for (const std::string& word : in_environment.command) trainer["command"].push_back(Unexpanded(word));
    trainer["env"] = environment;
    trainer["resourcesPerNode"] = Resources("worker");
    train_job["spec"] = {{"runtimeRef", {{"name", options_.kube_runtime}}}, {"trainer", trainer}};
    return {secret, train_job};
  }

 private:
  bool is_elastic() const { return options_.min_workers.has_value(); }
  std::string NameOf(const std::string& role) const { return fmt::format("{}-{}", name_, role); }

  Json Labels(const std::string& role) const {
    Json labels = {{"app.kubernetes.io/managed-by", "dmlc-submit"},
                   {kJobLabel, options_.job_name},
                   {kStartLabel, std::to_string(job_.start)}};
    if (!role.empty()) labels[kRoleLabel] = role;
    return labels;
  }

  Json Object(const char* version, const char* kind, const std::string& name, const std::string& role) const {
    Json object = {{"apiVersion", version}, {"kind", kind}, {"metadata", {{"name", name}}}};
    if (!options_.kube_namespace.empty()) object["metadata"]["namespace"] = options_.kube_namespace;
    object["metadata"]["labels"] = Labels(role);
    return object;
  }

  Json HeadlessService() const {
    Json service = Object("v1", "Service", name_, "");
    service["spec"] = {
        {"clusterIP", "None"},
        {"publishNotReadyAddresses", true},
        {"selector", {{kJobLabel, options_.job_name}, {kStartLabel, std::to_string(job_.start)}}}};
    return service;
  }

  // --- what is shipped -------------------------------------------------------------------------------------

  /// The shipped files and archives, with their keys in the Secret.
  std::vector<std::pair<std::string, PodFile>> PodFiles() const {
    std::vector<std::pair<std::string, PodFile>> files;
    const auto add = [&](const std::string& path, PodFile file) {
      std::string key = fs::path(path).filename().string();
      std::replace_if(
          key.begin(), key.end(),
          [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; }, '_');
      if (key.size() > 200) key.erase(0, key.size() - 200);  // long names usually differ at the end
      key = fmt::format("{}-{}", files.size(), key);
      file.path = fmt::format("{}/{}", kFilesPath, key);
      files.emplace_back(key, std::move(file));
    };
    for (const std::string& path : job_.shipment.files) {
      const bool executable = (fs::status(path).permissions() & fs::perms::owner_exec) != fs::perms::none;
      add(path, {"", fs::path(path).filename().string(), executable, false});
    }
    for (const Archive& archive : job_.shipment.archives)
      add(archive.path, {"", archive.directory, false, true});
    return files;
  }

  Json SecretOfFiles() const {
    Json secret = Object("v1", "Secret", NameOf("files"), "");
    Json data = Json::object();
    std::vector<std::string> paths = job_.shipment.files;
    for (const Archive& archive : job_.shipment.archives) paths.push_back(archive.path);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const std::string content = ReadWholeFile(paths[i]);
      bytes += content.size();
      data[files_[i].first] = Base64(content);
    }
    if (bytes > kMaxSecretBytes) {
      throw UsageError(fmt::format(
          "Kubernetes can carry at most 1 MiB of files, but these have {} bytes: {}; put them into the image or a volume",
          bytes, fmt::join(paths, ", ")));
    }
    secret["data"] = data;
    return secret;
  }

  /// The job token that the workers are given, or empty.
  std::string Token() const {
    return FindVariable(job_.plan->front().environment, wire::kTokenVariable).value_or("");
  }

  Json SecretOfToken() const {
    Json secret = Object("v1", "Secret", NameOf(kTrackerRole), kTrackerRole);
    secret["stringData"][std::string(wire::kTokenVariable)] = Token();
    return secret;
  }

  std::string Script(std::size_t first, const std::string& role) const {
    PlannedProcess process = (*job_.plan)[first];
    process.environment = WithoutTask(std::move(process.environment));
    PodScriptContext context{job_.job_mark,
                             "$JOB_COMPLETION_INDEX",
                             first,
                             job_.attempt,
                             is_elastic() ? kElasticRestarts : options_.num_restarts,
                             is_elastic()};
    // The DNS name that the Service gives the first pod of the role's Indexed Job.
    if (!HostRole(options_).empty()) context.master = fmt::format("{}-0.{}", NameOf(role), name_);
    if (role == "scheduler") {
      context.rank = "0";
      context.restarts = 0;
    } else if (!HostRole(options_).empty()) {
      context.awaited = KubernetesHost(options_, job_.start);
      context.seconds_to_be_known = job_.seconds_to_be_known;
    }
    for (const auto& [key, file] : files_) context.files.push_back(file);
    return PodScript(process, context);
  }

  Json Secret(const std::string& role, const std::string& script) const {
    Json secret = Object("v1", "Secret", NameOf(role), role);
    const std::string name(kScriptName);
    if (script.size() > kMaxSecretBytes) {
      throw UsageError(
          fmt::format("the command and its environment have {} bytes, but Kubernetes can carry at most 1 MiB",
                      script.size()));
    }
    AddContent(secret, name, script);
    return secret;
  }

  /// Adds content to a Secret: as text if it consists of printable ASCII, tabs and newlines, which every YAML
  /// parser reads in the same way, otherwise in Base64.
  static void AddContent(Json& secret, const std::string& name, const std::string& content) {
    const bool plain = std::all_of(content.begin(), content.end(), [](unsigned char c) {
      return c == '\n' || c == '\t' || (c >= ' ' && c < 0x7f);
    });
    secret[plain ? "stringData" : "data"][name] = plain ? content : Base64(content);
  }

  // --- pods and jobs ---------------------------------------------------------------------------------------

  Json Resources(const std::string& role) const {
    const bool workers = role == "worker";
    Json amounts = {{"cpu", std::to_string(workers ? options_.worker_cores : options_.server_cores)}};
    const auto& memory = workers ? options_.worker_memory_bytes : options_.server_memory_bytes;
    if (memory) amounts["memory"] = fmt::format("{}Mi", (*memory + 0xfffff) >> 20);
    if (workers && options_.worker_gpus > 0) amounts["nvidia.com/gpu"] = std::to_string(options_.worker_gpus);
    return {{"requests", amounts}, {"limits", amounts}};
  }

  /// Escapes "$", so that Kubernetes does not expand variables in the word.
  static std::string Unexpanded(const std::string& word) {
    std::string result;
    for (const char c : word) result.append(c == '$' ? 2 : 1, c);
    return result;
  }

  Json PodTemplate(const std::string& role, const Json& container) const {
    const bool finishes_round = is_elastic() && role != kTrackerRole;
    Json spec = {{"restartPolicy", "Never"},
                 {"terminationGracePeriodSeconds", finishes_round ? kElasticGraceSeconds : kGraceSeconds},
                 {"enableServiceLinks", false}};
    const std::string host = HostRole(options_);
    if (!host.empty()) spec["subdomain"] = name_;
    if (role == host) spec["hostname"] = role;
    spec["containers"] = Json::array({container});
    return {{"metadata", {{"labels", Labels(role)}}}, {"spec", spec}};
  }

  Json JobObject(const std::string& role) const {
    Json job = Object("batch/v1", "Job", NameOf(role), role);
    if (!options_.queue.empty()) job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = options_.queue;
    return job;
  }

  void FinishJob(Json& job, const Json& pod) const {
    Json& spec = job["spec"];
    if (!options_.time_limit.empty()) spec["activeDeadlineSeconds"] = Seconds(options_.time_limit);
    spec["ttlSecondsAfterFinished"] = kKeptSeconds;
    spec["template"] = pod;
  }

  Json TrackerJob() const {
    Json container = {{"name", kTrackerRole}, {"image", ImageOf(options_, kTrackerRole)}};
    // The tracker's standard output is discarded: it is for users who start the workers themselves.
    container["command"] = {
        "sh", "-c",
        fmt::format("exec {} >/dev/null", TrackerCommand(options_, NumWorkers(options_),
                                                         std::to_string(KubernetesPort(options_))))};
    if (!Token().empty()) {
      const std::string name(wire::kTokenVariable);
      container["env"] = {
          {{"name", name},
           {"valueFrom", {{"secretKeyRef", {{"name", NameOf(kTrackerRole)}, {"key", name}}}}}}};
    }
    container["resources"] = {{"requests", {{"cpu", "100m"}, {"memory", "64Mi"}}},
                              {"limits", {{"cpu", "1"}, {"memory", "512Mi"}}}};
    Json job = JobObject(kTrackerRole);
    job["spec"] = {{"backoffLimit", 0}};
    FinishJob(job, PodTemplate(kTrackerRole, container));
    if (!options_.kube_worker_template.empty()) ApplyAdmission(job, options_.kube_worker_template);
    if (!options_.kube_tracker_template.empty())
      ApplyTemplate(job, options_.kube_tracker_template, kTrackerRole);
    return job;
  }

  /// Adds an environment variable whose value Kubernetes fills in.
  static void AddReference(Json& container, std::string_view name, const char* kind, const Json& reference) {
    container["env"].push_back({{"name", name}, {"valueFrom", {{kind, reference}}}});
  }

  static void AddAnnotation(Json& container, std::string_view name, const char* annotation) {
    AddReference(container, name, "fieldRef",
                 {{"fieldPath", fmt::format("metadata.annotations['{}']", annotation)}});
  }

  /// Adds the rules to a Job that determine which pods Kubernetes replaces, and how often.
  void AddReplacement(Json& spec, const std::string& role) const {
    spec["backoffLimitPerIndex"] = is_elastic() ? kElasticRestarts : options_.num_restarts;
    spec["maxFailedIndexes"] = is_elastic() ? options_.num_workers - *options_.min_workers : 0;
    spec["podReplacementPolicy"] = "Failed";
    const Json lost = {{"action", is_elastic() ? "Ignore" : "Count"},
                       {"onPodConditions", {{{"type", "DisruptionTarget"}, {"status", "True"}}}}};
    // A process that fails without being killed has failed for good: its script has already restarted it or,
    // in an elastic job, it would fail again.
    Json codes = kKilledFromOutside;
    if (is_elastic()) {
      codes = Json::array();
      for (int code = kFirstSignalCode; code <= kLastSignalCode; ++code) codes.push_back(code);
    }
    Json failed = {{"action", "FailJob"}};
    failed["onExitCodes"] = {{"containerName", role}, {"operator", "NotIn"}, {"values", codes}};
    spec["podFailurePolicy"] = {{"rules", Json::array({lost, failed})}};
  }

  Json JobOfRole(const std::string& role, std::size_t count) const {
    Json container = {{"name", role}, {"image", ImageOf(options_, role)}};
    container["command"] = {"sh", fmt::format("{}/{}", kScriptPath, kScriptName)};
    const bool replaced = is_elastic() || (options_.num_restarts > 0 && role != "scheduler");
    if (replaced) AddAnnotation(container, kReplacedVariable, kReplacedAnnotation);
    if (is_elastic()) AddAnnotation(container, kDisruptedVariable, kDisruptedAnnotation);
    // Without this value, OpenMP would use all cores of the node, even if the container may use fewer. A
    // value set by the script takes precedence over this one.
    if (role == "worker")
      AddReference(container, kThreadsVariable, "resourceFieldRef", {{"resource", "limits.cpu"}});
    container["resources"] = Resources(role);
    container["volumeMounts"] =
        Json::array({{{"name", "dmlc-submit-script"}, {"mountPath", kScriptPath}, {"readOnly", true}}});
    Json volumes =
        Json::array({{{"name", "dmlc-submit-script"}, {"secret", {{"secretName", NameOf(role)}}}}});
    if (!files_.empty()) {
      container["volumeMounts"].push_back(
          {{"name", "dmlc-submit-files"}, {"mountPath", kFilesPath}, {"readOnly", true}});
      volumes.push_back({{"name", "dmlc-submit-files"}, {"secret", {{"secretName", NameOf("files")}}}});
    }
    Json pod = PodTemplate(role, container);
    pod["spec"]["volumes"] = volumes;

    Json job = JobObject(role);
    // The pod of an Indexed Job cannot have its own host name.
    Json spec = Json::object();
    if (role != HostRole(options_)) {
      spec = {{"completionMode", "Indexed"}, {"completions", count}, {"parallelism", count}};
    }
    if (replaced) {
      AddReplacement(spec, role);
    } else {
      spec["backoffLimit"] = 0;
    }
    job["spec"] = spec;
    FinishJob(job, pod);
    const std::string& path =
        role == "worker" ? options_.kube_worker_template : options_.kube_server_template;
    if (!path.empty()) ApplyTemplate(job, path, role);
    return job;
  }

  const KubeJob& job_;
  const Options& options_;
  const std::string name_;
  const std::vector<std::pair<std::string, PodFile>> files_;
};

}  // namespace

std::string KubernetesJobName(const Options& options) {
  const bool live = options.kube_manifest.empty() && !options.dry_run;
  std::string name = AsName(QueuedJobName(options));
  if (name.size() > kMaxNameBytes - kSuffixBytes - 1) name.resize(kMaxNameBytes - kSuffixBytes - 1);
  name = WithoutDashAtTheEnd(name);
  if (!live) return name;
  // There are no vowels, so that the letters form no words; Kubernetes does the same.
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::random_device random;
  name += '-';
  for (std::size_t i = 0; i < kSuffixBytes; ++i) name += kLetters[random() % kLetters.size()];
  return name;
}

std::string HostRole(const Options& options) {
  if (options.num_servers > 0) return tracker::RoleName(tracker::Role::kScheduler);
  return TrackerIsAPod(options) ? kTrackerRole : "";
}

bool TrackerIsAPod(const Options& options) {
  return options.num_servers == 0 && !options.no_tracker && options.host_ip.empty();
}

std::string KubernetesHost(const Options& options, int start) {
  return fmt::format("{}.{}", HostRole(options), NameOfStart(options, start));
}

std::uint16_t KubernetesPort(const Options& options) {
  return options.port == 0 ? Options().port : options.port;
}

KubeManifest MakeKubeManifest(const KubeJob& job) {
  return Maker(job).Make();
}

std::vector<Json> MakeTrainJob(const KubeJob& job) {
  return Maker(job).MakeTrainJob();
}

}  // namespace warren::submit
