// The table of options, and how the value of each is stored.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>

#include "submit/command.h"
#include "submit/options.h"
#include "wire/classic.h"

namespace warren::submit {
namespace {

constexpr std::array<std::pair<std::string_view, ClusterKind>, 8> kClusters = {{
    {"local", kLocal},
    {"ssh", kSsh},
    {"mpi", kMpi},
    {"slurm", kSlurm},
    {"sge", kSge},
    {"yarn", kYarn},
    {"mesos", kMesos},
    {"kubernetes", kKubernetes},
}};
constexpr unsigned kBatch = kMpi | kSlurm | kSge | kYarn | kMesos | kKubernetes;
constexpr unsigned kShipping = kYarn | kKubernetes;

constexpr std::string_view kJobGroup = "The job";
constexpr std::string_view kTrackerGroup = "Tracker";
constexpr std::string_view kOutputGroup = "Output and logs";
constexpr std::string_view kResourceGroup = "Resources on a cluster";
constexpr std::string_view kOneClusterGroup = "One kind of cluster only";
constexpr std::string_view kHelpGroup = "Help";

constexpr int kMaxWorkers = wire::classic::kMaxWorldSize;
/// Enough for any machine, small enough that sums of milliseconds and bytes stay in range.
constexpr int kMaxCount = 1'000'000;
constexpr double kMaxTimeoutSeconds = 1e8;

// --- how values are stored -------------------------------------------------------------------------------

int ParseCount(const std::string& text, int least, int most) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (error == std::errc::result_out_of_range || (whole && value > most)) {
    throw std::runtime_error(fmt::format("'{}' is too big, at most {} is possible", text, most));
  }
  if (!whole) throw std::runtime_error(fmt::format("'{}' is not a whole number", text));
  if (value < least) {
    throw std::runtime_error(fmt::format("'{}' is too small, at least {} is needed", text, least));
  }
  return static_cast<int>(value);
}

template <auto member>
void Text(Options& options, const std::string& value) {
  options.*member = value;
}

template <auto member>
void TextList(Options& options, const std::string& value) {
  (options.*member).push_back(value);
}

template <auto member, int least, int most>
void Count(Options& options, const std::string& value) {
  options.*member =
      static_cast<std::remove_reference_t<decltype(options.*member)>>(ParseCount(value, least, most));
}

void StoreWorkerCores(Options& options, const std::string& value) {
  Count<&Options::worker_cores, 1, kMaxCount>(options, value);
  options.worker_cores_were_chosen = true;
}

template <auto member>
void Memory(Options& options, const std::string& value) {
  options.*member = ParseMemorySize(value);
}

template <Request request>
void Ask(Options& options, const std::string&) {
  options.request = request;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The meaning of `text` among `choices`; throws an error that lists them.
template <typename Value, std::size_t kSize>
Value Choose(const std::string& text, const std::array<std::pair<std::string_view, Value>, kSize>& choices) {
  const std::string wanted = Lower(text);
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == wanted) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw std::runtime_error(fmt::format("'{}' is none of {}", text, names));
}

void StoreCluster(Options& options, const std::string& value) {
  options.cluster = Choose(value, kClusters);
  options.cluster_was_chosen = true;
}

void StoreAutoFileCache(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, bool>, 6> kChoices = {
      {{"on", true}, {"off", false}, {"true", true}, {"false", false}, {"1", true}, {"0", false}}};
  options.auto_file_cache = Choose(value, kChoices);
}

void StoreLogLevel(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, bool>, 2> kChoices = {{{"info", false}, {"debug", true}}};
  options.debug_log = Choose(value, kChoices);
}

void StoreSortBy(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, tracker::SortBy>, 2> kChoices = {
      {{"host", tracker::SortBy::kHost}, {"task", tracker::SortBy::kTask}}};
  options.sort_by = Choose(value, kChoices);
}

void StoreAdmit(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, tracker::Admit>, 3> kChoices = {
      {{"token", tracker::Admit::kToken}, {"hosts", tracker::Admit::kHosts}, {"any", tracker::Admit::kAny}}};
  options.admit = Choose(value, kChoices);
}

void StoreColor(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, ColorChoice>, 3> kChoices = {
      {{"auto", ColorChoice::kAuto}, {"always", ColorChoice::kAlways}, {"never", ColorChoice::kNever}}};
  options.color = Choose(value, kChoices);
}

void StoreHostKeys(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, HostKeys>, 3> kChoices = {
      {{"strict", HostKeys::kStrict}, {"accept-new", HostKeys::kAcceptNew}, {"ignore", HostKeys::kIgnore}}};
  options.ssh_host_keys = Choose(value, kChoices);
}

void StoreKubeKind(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, bool>, 2> kChoices = {
      {{"job", false}, {"trainjob", true}}};
  options.kube_trainjob = Choose(value, kChoices);
}

/// Words with blanks between; one with a blank in it stands in '' or "".
template <auto member>
void Words(Options& options, const std::string& value) {
  for (std::string& word : SplitWords(value)) (options.*member).push_back(std::move(word));
}

void StoreTimeout(Options& options, const std::string& value) {
  double seconds = 0;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), seconds, std::chars_format::fixed);
  if (error != std::errc{} || end != value.data() + value.size() || !(seconds >= 0)) {
    throw std::runtime_error(fmt::format("'{}' is not a number of seconds (0: wait for ever)", value));
  }
  if (seconds > kMaxTimeoutSeconds) {
    throw std::runtime_error(fmt::format("'{}' is too big; 0 waits for ever", value));
  }
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  // Less than a millisecond was asked for, not "for ever".
  if (seconds > 0 && options.timeout.count() == 0) options.timeout = std::chrono::milliseconds{1};
}

template <auto member>
void Flag(Options& options, const std::string&) {
  options.*member = true;
}

/// KEY=VALUE as it is; a KEY alone takes the value it has now.
void StoreEnvironment(Options& options, const std::string& value) {
  const std::size_t equals = value.find('=');
  if (value.empty() || equals == 0) {
    throw std::runtime_error(fmt::format("'{}' is neither KEY=VALUE nor KEY", value));
  }
  if (equals == std::string::npos) {
    const char* current = std::getenv(value.c_str());
    if (current == nullptr) {
      throw std::runtime_error(fmt::format(
          "{} is not set in the environment; write --env {}=VALUE to give it a value", value, value));
    }
    options.environment.emplace_back(value, current);
    return;
  }
  options.environment.emplace_back(value.substr(0, equals), value.substr(equals + 1));
}

}  // namespace

std::string_view ClusterName(ClusterKind cluster) {
  const auto* const found =
      std::find_if(kClusters.begin(), kClusters.end(), [&](const auto& c) { return c.second == cluster; });
  return found == kClusters.end() ? "unknown" : found->first;
}

const std::vector<Option>& OptionTable() {
  static const std::vector<Option> table = {
      {"--num-workers", "N", "", kJobGroup, kEveryCluster, "How many workers to start. Required.",
       Count<&Options::num_workers, 1, kMaxWorkers>},
      {"--cluster", "NAME", "$DMLC_SUBMIT_CLUSTER, else local", kJobGroup, kEveryCluster,
       "Where the processes run: local (this machine), ssh, mpi, slurm, sge, yarn, mesos or kubernetes.",
       StoreCluster},
      {"--num-servers", "M", "0", kJobGroup, kEveryCluster,
       "How many parameter servers to start. With M > 0 the command is started once as the scheduler, M "
       "times "
       "as a server and N times as a worker; DMLC_ROLE tells them apart.",
       Count<&Options::num_servers, 0, kMaxWorkers>},
      {"--local-num-attempt", "K", "0", kJobGroup, kEveryCluster,
       "How often a process that fails is started again before the job is given up. DMLC_NUM_ATTEMPT is 0 at "
       "its first start and counts up.",
       Count<&Options::num_restarts, 0, kMaxCount>},
      {"--max-restarts", "N", "0", kJobGroup, kEveryCluster,
       "How often the whole job is stopped and started again when a process of it fails for good or workers "
       "stay "
       "missing: for programs that go on from a model they saved, as XGBoost's do. DMLC_NUM_ATTEMPT counts "
       "up.",
       Count<&Options::max_restarts, 0, kMaxCount>},
      {"--env", "KEY=VALUE", "", kJobGroup, kEveryCluster,
       "Gives the processes an environment variable, the value exactly as written. KEY alone passes on the "
       "value it has now.",
       StoreEnvironment, true},
      {"--files", "FILE", "", kJobGroup, kEveryCluster,
       "A file the processes find in their directory, under its own name. Where they run in this directory, "
       "or one that "
       "is shared or copied, it is put there for as long as the job runs.",
       TextList<&Options::files>, true},
      {"--archives", "FILE", "", kJobGroup, kEveryCluster,
       "Like --files, unpacked: what data.tar.gz or data.zip contains is found in data/.",
       TextList<&Options::archives>, true},
      {"--auto-file-cache", "on|off", "on", kJobGroup, kShipping,
       "Whether files named in the command are shipped like --files and named without their folders. Only "
       "where the "
       "processes run in directories of their own.",
       StoreAutoFileCache},
      {"--dry-run", "", "", kJobGroup, kEveryCluster,
       "Prints what would be started, as shell commands, and starts nothing.", Flag<&Options::dry_run>},

      {"--host-ip", "IP|auto|dns", "", kTrackerGroup, kEveryCluster,
       "The address the processes are told to find the tracker at: an address or name, auto (that of the "
       "default route) or dns (this machine's full name). Unless given: 127.0.0.1 with --cluster local, else "
       "that of the route to the first host of the job.",
       Text<&Options::host_ip>},
      {"--no-tracker", "", "", kTrackerGroup, kEveryCluster,
       "Starts no tracker: for programs that find each other by themselves, such as MPI's.",
       Flag<&Options::no_tracker>},
      {"--port", "P", "9091", kTrackerGroup, kEveryCluster,
       "The first port the tracker tries; 0 takes any free one. Unless given, it begins anywhere between "
       "9091 "
       "and --port-end, so that what is left of an earlier job does not find this one's tracker. A "
       "parameter-server job's scheduler gets a free port of the same range.",
       Count<&Options::port, 0, 65535>},
      {"--port-end", "P", "9999", kTrackerGroup, kEveryCluster, "The last port the tracker tries.",
       Count<&Options::port_end, 0, 65535>},
      {"--sortby", "host|task", "host", kTrackerGroup, kEveryCluster,
       "What workers are sorted by before they get their ranks.", StoreSortBy},
      {"--tls", "", "", kTrackerGroup, kEveryCluster,
       "Encrypts the connections of workers with Warren's engine, to the tracker and among each other, by "
       "TLS 1.3 "
       "with the job's token as the key; needs OpenSSL 3 on every host. XGBoost's own connections stay in "
       "the clear.",
       Flag<&Options::tls>},
      {"--admit", "token|hosts|any", "", kTrackerGroup, kEveryCluster,
       "Which workers the tracker takes that cannot prove the job's token, as XGBoost's own: none, those "
       "from "
       "the hosts of the job, or any. Unless given: any when only this machine reaches the tracker, hosts "
       "where "
       "they are known before the start (ssh, mpi with a host file, slurm in an allocation), else any.",
       StoreAdmit},
      {"--timeout", "SECONDS", "1800", kTrackerGroup, kEveryCluster,
       "How long workers may be missing at the tracker before the job is given up; 0: for ever, also right "
       "for "
       "a command that never speaks to the tracker.",
       StoreTimeout},

      {"--log-dir", "DIR", "", kOutputGroup, kEveryCluster,
       "Also keeps the output of each process in DIR/worker-0.log and so on. DIR is made when missing.",
       Text<&Options::log_dir>},
      {"--color", "auto|always|never", "auto", kOutputGroup, kEveryCluster,
       "Whether the [rank] before each line of output is coloured; auto: on a terminal.", StoreColor},
      {"--log-level", "INFO|DEBUG", "INFO", kOutputGroup, kEveryCluster,
       "How much dmlc-submit and the tracker say.", StoreLogLevel},
      {"--log-file", "FILE", "", kOutputGroup, kEveryCluster,
       "Also writes what dmlc-submit and the tracker say to FILE, with the time.", Text<&Options::log_file>},

      {"--worker-cores", "N", "local, ssh, mpi: its share of the host's cores; else 1", kResourceGroup,
       kEveryCluster,
       "Processor cores for each worker. Also its OMP_NUM_THREADS, where the environment and --env have "
       "none.",
       StoreWorkerCores},
      {"--worker-memory", "SIZE", "the cluster's own; 1g with yarn", kResourceGroup, kBatch,
       "Memory for each worker, such as 512m or 1.5g.", Memory<&Options::worker_memory_bytes>},
      {"--server-cores", "N", "1", kResourceGroup, kBatch, "Processor cores for each parameter server.",
       Count<&Options::server_cores, 1, kMaxCount>},
      {"--server-memory", "SIZE", "the cluster's own; 1g with yarn", kResourceGroup, kBatch,
       "Memory for each parameter server.", Memory<&Options::server_memory_bytes>},
      {"--worker-gpus", "N", "0", kResourceGroup, kSlurm | kYarn | kKubernetes, "GPUs for each worker.",
       Count<&Options::worker_gpus, 0, kMaxCount>},
      {"--time-limit", "TIME", "the cluster's own", kResourceGroup, kSlurm | kSge | kKubernetes,
       "How long the job may run, as the cluster writes it: 90 (minutes) or 1-12:00:00 for slurm, 1:30:00 or "
       "seconds for sge, seconds for kubernetes.",
       Text<&Options::time_limit>},
      {"--jobname", "NAME", "", kResourceGroup, kBatch, "The name of the job in the cluster's queue.",
       Text<&Options::job_name>},
      {"--queue", "NAME", "the cluster's own", kResourceGroup, kBatch, "The queue the job is put into.",
       Text<&Options::queue>},

      {"--host-file", "FILE", "$HOSTFILE", kOneClusterGroup, kSsh | kMpi,
       "The hosts to use, one a line: [user@]host[:port] [slots=N], IPv6 as [address]:port, # begins a "
       "comment.",
       Text<&Options::host_file>},
      {"--sync-dst-dir", "DIR", "", kOneClusterGroup, kSsh,
       "Copies the current directory to DIR on every host first, by rsync, and runs the processes there.",
       Text<&Options::sync_dst_dir>},
      {"--ssh-host-keys", "strict|accept-new|ignore", "strict", kOneClusterGroup, kSsh,
       "Hosts whose keys are not known: refused unless your configuration of ssh says otherwise, taken in, "
       "or not "
       "looked at.",
       StoreHostKeys},
      {"--ssh-options", "WORDS", "", kOneClusterGroup, kSsh,
       "More options for ssh, such as '-i key -J jump'; quotes keep blanks in a word.",
       Words<&Options::ssh_options>, true},
      {"--mpirun", "PROGRAM", "mpirun", kOneClusterGroup, kMpi,
       "The mpirun to use: of Open MPI 4 or 5, MPICH or Intel MPI.", Text<&Options::mpirun>},
      {"--mpirun-args", "WORDS", "", kOneClusterGroup, kMpi,
       "More options for mpirun, such as '-bind-to none -x NCCL_DEBUG=INFO -mca pml ob1'; quotes keep blanks "
       "in a word.",
       Words<&Options::mpirun_args>, true},
      {"--sge-log-dir", "DIR", "", kOneClusterGroup, kSge,
       "Where Grid Engine keeps what its own scripts print (the processes' output is with dmlc-submit). None "
       "is kept "
       "unless given.",
       Text<&Options::sge_log_dir>},
      {"--sge-args", "WORDS", "", kOneClusterGroup, kSge,
       "More options for qsub, such as '-P project -l gpu=1'.", Words<&Options::sge_args>, true},
      {"--slurm-args", "WORDS", "", kOneClusterGroup, kSlurm,
       "More options for sbatch, or for srun inside an allocation, such as '--account=a --constraint=fast'.",
       Words<&Options::slurm_args>, true},
      {"--slurm-worker-nodes", "N", "one for each worker", kOneClusterGroup, kSlurm,
       "How many nodes the workers are spread over.", Count<&Options::slurm_worker_nodes, 1, kMaxCount>},
      {"--slurm-server-nodes", "N", "one for each server", kOneClusterGroup, kSlurm,
       "How many nodes the parameter servers are spread over.",
       Count<&Options::slurm_server_nodes, 1, kMaxCount>},
      {"--kube-namespace", "NAME", "that of kubectl's context", kOneClusterGroup, kKubernetes,
       "The namespace the job runs in.", Text<&Options::kube_namespace>},
      {"--kube-worker-image", "IMAGE", "", kOneClusterGroup, kKubernetes,
       "The container image of the workers; it needs a POSIX shell. Required.",
       Text<&Options::kube_worker_image>},
      {"--kube-server-image", "IMAGE", "the workers'", kOneClusterGroup, kKubernetes,
       "The container image of the parameter servers and their scheduler.",
       Text<&Options::kube_server_image>},
      {"--kube-tracker-image", "IMAGE", "the workers'", kOneClusterGroup, kKubernetes,
       "The container image of the tracker's pod; it has rabit-tracker on its PATH. With --host-ip there is "
       "no such "
       "pod.",
       Text<&Options::kube_tracker_image>},
      {"--kube-worker-template", "FILE", "", kOneClusterGroup, kKubernetes,
       "A manifest in YAML, of a Job or a Pod, that is merged over that of the workers.",
       Text<&Options::kube_worker_template>},
      {"--kube-server-template", "FILE", "", kOneClusterGroup, kKubernetes,
       "The same for the parameter servers and their scheduler.", Text<&Options::kube_server_template>},
      {"--kube-tracker-template", "FILE", "", kOneClusterGroup, kKubernetes,
       "The same for the tracker, which takes the image secrets, the account and the security context of the "
       "workers' "
       "template anyway.",
       Text<&Options::kube_tracker_template>},
      {"--kube-manifest", "FILE", "", kOneClusterGroup, kKubernetes,
       "Writes the manifest of the job into FILE (-: to standard output), to be applied by other means, and "
       "starts "
       "nothing.",
       Text<&Options::kube_manifest>},
      {"--kube-kind", "job|trainjob", "job", kOneClusterGroup, kKubernetes,
       "What is made: Indexed Jobs, or, with --kube-manifest, a TrainJob for Kubeflow Trainer.",
       StoreKubeKind},
      {"--kube-runtime", "NAME", "xgboost-distributed", kOneClusterGroup, kKubernetes,
       "The runtime a TrainJob refers to.", Text<&Options::kube_runtime>},
      {"--kube-args", "WORDS", "", kOneClusterGroup, kKubernetes,
       "More options for kubectl, such as '--context prod'.", Words<&Options::kube_args>, true},
      {"--hdfs-tempdir", "DIR", "/tmp", kOneClusterGroup, kYarn, "A directory in HDFS for temporary files.",
       Text<&Options::hdfs_tempdir>},
      {"--yarn-app-classpath", "PATH", "", kOneClusterGroup, kYarn,
       "The class path of the application master, in place of the default.",
       Text<&Options::yarn_app_classpath>},
      {"--yarn-app-dir", "DIR", "", kOneClusterGroup, kYarn, "Where the application master lies.",
       Text<&Options::yarn_app_dir>},
      {"--yarn-args", "WORDS", "", kOneClusterGroup, kYarn,
       "More options for Hadoop's distributed shell, such as '-node_label_expression fast'.",
       Words<&Options::yarn_args>, true},
      {"--mesos-master", "HOST:PORT", "", kOneClusterGroup, kMesos,
       "The Mesos master (Apache Mesos is retired).", Text<&Options::mesos_master>},
      {"--ship-libcxx", "DIR", "", kOneClusterGroup, kYarn,
       "A directory with a libstdc++ that is shipped to the processes.", Text<&Options::ship_libcxx>},

      {"--help", "", "", kHelpGroup, kEveryCluster, "Prints this.", Ask<Request::kHelp>},
      {"--help-markdown", "", "", kHelpGroup, kEveryCluster, "Prints docs/options.md.",
       Ask<Request::kHelpMarkdown>},
      {"--version", "", "", kHelpGroup, kEveryCluster, "Prints the version.", Ask<Request::kVersion>},
  };
  return table;
}

std::uint64_t ParseMemorySize(const std::string& text) {
  const std::map<char, int> shifts = {{'k', 10}, {'m', 20}, {'g', 30}, {'t', 40}};
  const auto malformed = [&] {
    return std::runtime_error(
        fmt::format("'{}' is not a memory size: a number and one of k, m, g, t, such as 512m or 1.5g", text));
  };
  if (text.size() < 2) throw malformed();
  const auto unit = shifts.find(static_cast<char>(std::tolower(static_cast<unsigned char>(text.back()))));
  double number = 0;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  if (unit == shifts.end() || error != std::errc{} || end != last || !(number >= 0)) throw malformed();
  const double bytes = number * static_cast<double>(std::uint64_t{1} << unit->second);
  if (bytes < 1) throw std::runtime_error(fmt::format("'{}' is no memory at all", text));
  if (bytes >= static_cast<double>(std::uint64_t{1} << 60)) {
    throw std::runtime_error(fmt::format("'{}' is more memory than any machine has", text));
  }
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace warren::submit
