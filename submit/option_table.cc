// The table of options that any job may be given, and how the value of each is stored. Those that are for one
// cluster alone come from its entry in the registry.
#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "submit/cluster/clusters.h"
#include "submit/option_values.h"
#include "submit/options.h"
#include "wire/classic.h"

namespace warren::submit {
namespace {

/// Options that old scripts may give and that do nothing.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWithoutEffect = {
    {{"--hdfs-tempdir", "DIR"}, {"--mesos-master", "HOST:PORT"}, {"--ship-libcxx", "DIR"}}};

constexpr int kMaxWorkers = wire::classic::kMaxWorldSize;
constexpr double kMaxTimeoutSeconds = 1e8;

// --- how values are stored -------------------------------------------------------------------------------

void StoreWorkerCores(Options& options, const std::string& value) {
  Count<&Options::worker_cores, 1, kMaxCount>(options, value);
  options.worker_cores_were_chosen = true;
}

template <Request request>
void Ask(Options& options, const std::string&) {
  options.request = request;
}

void StoreCluster(Options& options, const std::string& value) {
  options.cluster = FindCluster(Lower(value)).name;
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

void StoreCheckData(Options& options, const std::string&) {
  options.environment.emplace_back("WARREN_CHECK_DATA", "1");
}

void StoreMode(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, Mode>, 2> kChoices = {
      {{"ps", Mode::kPs}, {"mpi", Mode::kMpi}}};
  options.mode = Choose(value, kChoices);
}

void StoreBind(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, Bind>, 3> kChoices = {
      {{"core", Bind::kCore}, {"numa", Bind::kNuma}, {"none", Bind::kNone}}};
  options.bind = Choose(value, kChoices);
}

void StoreCompletion(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, Shell>, 3> kChoices = {
      {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}}};
  options.shell = Choose(value, kChoices);
  options.request = Request::kCompletion;
}

void StoreColor(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, ColorChoice>, 3> kChoices = {
      {{"auto", ColorChoice::kAuto}, {"always", ColorChoice::kAlways}, {"never", ColorChoice::kNever}}};
  options.color = Choose(value, kChoices);
}

void StoreLogFormat(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, LogFormat>, 2> kChoices = {
      {{"text", LogFormat::kText}, {"json", LogFormat::kJson}}};
  options.log_format = Choose(value, kChoices);
}

/// `zero`: what 0 means.
std::chrono::milliseconds Seconds(const std::string& value, std::string_view zero) {
  double seconds = 0;
  const auto [end, error] = fast_float::from_chars(value.data(), value.data() + value.size(), seconds,
                                                   fast_float::chars_format::fixed);
  if (error != std::errc{} || end != value.data() + value.size() || !(seconds >= 0)) {
    throw std::runtime_error(fmt::format("'{}' is not a number of seconds (0: {})", value, zero));
  }
  if (seconds > kMaxTimeoutSeconds) {
    throw std::runtime_error(fmt::format("'{}' is too big (0: {})", value, zero));
  }
  const std::chrono::milliseconds time(static_cast<std::int64_t>(seconds * 1000));
  // Less than a millisecond was asked for, not none.
  return seconds > 0 && time.count() == 0 ? std::chrono::milliseconds{1} : time;
}

void StoreTimeout(Options& options, const std::string& value) {
  options.timeout = Seconds(value, "wait for ever");
}

void StoreHangTimeout(Options& options, const std::string& value) {
  options.hang_timeout = Seconds(value, "nobody looks");
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

void StoreMetricsPort(Options& options, const std::string& value) {
  options.metrics = ParseWebAddress(value);
}

void StoreDashboard(Options& options, const std::string& value) {
  options.dashboard = value.empty() ? WebAddress{} : ParseWebAddress(value);
}

void Drop(Options&, const std::string&) {}

std::string ClusterHelp() {
  std::string names;
  for (const ClusterEntry& cluster : Clusters()) {
    names += fmt::format("{}{} ({}{})", names.empty() ? "" : ", ", cluster.name, cluster.where,
                         cluster.experimental ? "; experimental" : "");
  }
  return fmt::format("Where the processes run: {}.", names);
}

std::vector<Option> MakeTable() {
  static const std::string bind_default = fmt::format("{}; slurm: Slurm's own", BindName(kDefaultBind));
  std::vector<Option> table;
  const auto add = [&](const std::string& group, bool for_every_cluster, std::vector<Option> rows) {
    for (Option& row : rows) {
      row.group = group;
      row.for_every_cluster = for_every_cluster;
      table.push_back(std::move(row));
    }
  };
  add("The job", true,
      {
          {"--num-workers",
           "N",
           "",
           "How many workers to start. Required.",
           Count<&Options::num_workers, 1, kMaxWorkers>,
           false,
           {"-n"}},
          {"--cluster",
           "NAME",
           "$DMLC_SUBMIT_CLUSTER, else local",
           ClusterHelp(),
           StoreCluster,
           false,
           {"--launcher"}},
          {"--num-servers",
           "M",
           "0",
           "How many parameter servers to start. With M > 0 the command is started once as the scheduler, M "
           "times "
           "as a server and N times as a worker; DMLC_ROLE tells them apart.",
           Count<&Options::num_servers, 0, kMaxWorkers>,
           false,
           {"-s"}},
          {"--mode", "ps|mpi", "ps",
           "mpi: the workers work together without servers, as the KVStore dist_sync_mpi has it, and "
           "--num-servers "
           "counts for nothing.",
           StoreMode},
          {"--local-num-attempt", "K", "0",
           "How often a process that fails is started again before the job is given up. DMLC_NUM_ATTEMPT is "
           "0 at "
           "its first start and counts up.",
           Count<&Options::num_restarts, 0, kMaxCount>},
          {"--max-restarts", "N", "0",
           "How often the whole job is stopped and started again when a process of it fails for good or "
           "workers "
           "stay "
           "missing: for programs that go on from a model they saved, as XGBoost's do. DMLC_NUM_ATTEMPT "
           "counts "
           "up.",
           Count<&Options::max_restarts, 0, kMaxCount>},
          {"--env", "KEY=VALUE", "",
           "Gives the processes an environment variable, the value exactly as written. KEY alone passes on "
           "the "
           "value it has now.",
           StoreEnvironment, true},
          {"--files", "FILE", "",
           "A file the processes find in their directory, under its own name. Where they run in this "
           "directory, "
           "or one that "
           "is shared or copied, it is put there for as long as the job runs.",
           TextList<&Options::files>, true},
          {"--archives", "FILE", "",
           "Like --files, unpacked: what data.tar.gz or data.zip contains is found in data/.",
           TextList<&Options::archives>, true},
          {"--check-data", "", "",
           "Workers that read with warren.data show what each of them got before they train, in one table: "
           "rows, columns, ranges of labels and features.",
           StoreCheckData},
          {"--dry-run", "", "", "Prints what would be started, as shell commands, and starts nothing.",
           Flag<&Options::dry_run>},
      });
  add("The job", false,
      {
          {"--auto-file-cache", "on|off", "on",
           "Whether files named in the command are shipped like --files and named without their folders. "
           "Only "
           "where the "
           "processes run in directories of their own.",
           StoreAutoFileCache},
      });
  add("Tracker", true,
      {
          {"--host-ip", "IP|auto|dns", "",
           "The address the processes are told to find the tracker at: an address or name, auto (that of the "
           "default route) or dns (this machine's full name). Unless given: 127.0.0.1 with --cluster local, "
           "else "
           "that of the route to the first host of the job.",
           Text<&Options::host_ip>},
          {"--no-tracker", "", "",
           "Starts no tracker: for programs that find each other by themselves, such as MPI's.",
           Flag<&Options::no_tracker>},
          {"--port", "P", "9091",
           "The first port the tracker tries; 0 takes any free one. Unless given, it begins anywhere between "
           "9091 "
           "and --port-end, so that what is left of an earlier job does not find this one's tracker. A "
           "parameter-server job's scheduler gets a free port of the same range.",
           Count<&Options::port, 0, 65535>},
          {"--port-end", "P", "9999", "The last port the tracker tries.",
           Count<&Options::port_end, 0, 65535>},
          {"--sortby", "host|task", "host", "What workers are sorted by before they get their ranks.",
           StoreSortBy},
          {"--tls", "", "",
           "Encrypts the connections of workers with Warren's engine, to the tracker and among each other, "
           "by "
           "TLS 1.3 "
           "with the job's token as the key; needs OpenSSL 3 on every host. XGBoost's own connections stay "
           "in "
           "the clear.",
           Flag<&Options::tls>},
          {"--admit", "token|hosts|any", "",
           "Which workers the tracker takes that cannot prove the job's token, as XGBoost's own: none, those "
           "from "
           "the hosts of the job, or any. Unless given: any when only this machine reaches the tracker, "
           "hosts "
           "where "
           "they are known before the start (ssh, mpi with a host file, slurm in an allocation), else any.",
           StoreAdmit},
          {"--timeout", "SECONDS", "1800",
           "How long workers may be missing at the tracker before the job is given up; 0: for ever, also "
           "right "
           "for "
           "a command that never speaks to the tracker.",
           StoreTimeout},
      });
  add("Output and logs", true,
      {
          {"--log-dir", "DIR", "",
           "Also keeps the output of each process in DIR/worker-0.log and so on. DIR is made when missing.",
           Text<&Options::log_dir>},
          {"--color", "auto|always|never", "auto",
           "Whether the [rank] before each line of output is coloured; auto: on a terminal.", StoreColor},
          {"--log-level", "INFO|DEBUG", "INFO", "How much dmlc-submit and the tracker say.", StoreLogLevel},
          {"--log-file", "FILE", "",
           "Also writes what dmlc-submit and the tracker say to FILE, with the time.",
           Text<&Options::log_file>},
          {"--hang-timeout", "SECONDS", "60",
           "After how long without progress a worker is named, with what is known of it: stopped, waiting "
           "for "
           "a disk, or out of reach with its host; 0: nobody looks.",
           StoreHangTimeout},
          {"--dump-on-hang", "", "",
           "Also shows where that worker is in its program, by py-spy and gdb where its host has them. "
           "SIGUSR2 makes dmlc-submit show that of all workers at any time.",
           Flag<&Options::dump_on_hang>},
          {"--timeline", "FILE", "",
           "Writes what the workers did in collective calls, and when, to FILE: trace events of all ranks on "
           "one clock, which Perfetto (ui.perfetto.dev) and chrome://tracing open. Of workers that use "
           "Warren's engine.",
           Text<&Options::timeline>},
          {"--metrics-port", "[HOST:]PORT", "",
           "Serves what the job does to Prometheus at http://HOST:PORT/metrics, to anybody who reaches it. "
           "HOST is 127.0.0.1 unless given, an IPv6 address stands in []; port 0 takes any free one.",
           StoreMetricsPort},
          {.name = "--dashboard",
           .value = "[=[HOST:]PORT]",
           .default_value =
               "any free port of 127.0.0.1, or that of --metrics-port where that is on this machine alone",
           .help =
               "Shows the job on a page in a browser while it runs, behind a token that is in the address "
               "that is printed. With --log-dir the page is kept in DIR/job.html.",
           .store = StoreDashboard,
           .value_is_optional = true},
          {"--log-format", "text|json", "text",
           "json: each line of the output, and of --log-file, is a JSON object with the time, who wrote it "
           "and the "
           "text. What --dry-run prints stays as it is.",
           StoreLogFormat},
          {"--quiet",
           "",
           "",
           "dmlc-submit itself says only warnings and errors. --log-file still gets all of it.",
           Flag<&Options::quiet>,
           false,
           {"-q"}},
          {"--show-all-errors", "", "",
           "Shows the errors of all processes as they come. Unless given, those that followed from the first "
           "failure "
           "are folded into one line, and the words of the first come last.",
           Flag<&Options::show_all_errors>},
      });
  add("Resources on a cluster", true,
      {
          {"--worker-cores", "N", "local, ssh, mpi: its share of the host's cores; else 1",
           "Processor cores for each worker. Also its OMP_NUM_THREADS, where the environment and --env have "
           "none.",
           StoreWorkerCores},
      });
  add("Resources on a cluster", false,
      {
          {"--bind", "core|numa|none", bind_default,
           "What each process may run on: cores of its own, as many as a worker has threads; all cores of "
           "one NUMA node; or any core.",
           StoreBind},
          {"--worker-memory", "SIZE", "the cluster's own; 1g with yarn",
           "Memory for each worker, such as 512m or 1.5g.", Memory<&Options::worker_memory_bytes>},
          {"--server-cores", "N", "1", "Processor cores for each parameter server.",
           Count<&Options::server_cores, 1, kMaxCount>},
          {"--server-memory", "SIZE", "the cluster's own; 1g with yarn", "Memory for each parameter server.",
           Memory<&Options::server_memory_bytes>},
          {"--worker-gpus", "N", "0", "GPUs for each worker.", Count<&Options::worker_gpus, 0, kMaxCount>},
          {"--time-limit", "TIME", "the cluster's own",
           "How long the job may run, as the cluster writes it: 90 (minutes) or 1-12:00:00 for slurm, "
           "1:30:00 or "
           "seconds for sge, seconds for kubernetes.",
           Text<&Options::time_limit>},
          {"--jobname", "NAME", "", "The name of the job in the cluster's queue.", Text<&Options::job_name>},
          {"--queue", "NAME", "the cluster's own", "The queue the job is put into.", Text<&Options::queue>},
          {"--host-file",
           "FILE",
           "$HOSTFILE",
           "The hosts to use, one a line: [user@]host[:port] [slots=N], IPv6 as [address]:port, # begins a "
           "comment.",
           Text<&Options::host_file>,
           false,
           {"-H", "--hostfile"}},
      });
  for (const ClusterEntry& cluster : Clusters()) {
    add(fmt::format("Only with --cluster {}{}", cluster.name, cluster.experimental ? " (experimental)" : ""),
        false, cluster.own_options);
  }
  add("Help", true,
      {
          {"--help", "", "", "Prints this.", Ask<Request::kHelp>},
          {"--help-markdown", "", "", "Prints docs/reference/options.md.", Ask<Request::kHelpMarkdown>},
          {"--help-environment", "", "", "Prints the table of environment variables, in Markdown.",
           Ask<Request::kHelpEnvironment>},
          {"--help-man", "", "", "Prints the manual page dmlc-submit.1.", Ask<Request::kHelpMan>},
          {"--completion", "bash|zsh|fish", "",
           "Prints the script by which that shell completes the command line.", StoreCompletion},
          {"--version", "", "", "Prints the version.", Ask<Request::kVersion>},
      });
  for (const auto& [name, value] : kWithoutEffect) {
    add("Without effect", false, {{name, value, "", "Taken for old scripts; does nothing.", Drop}});
  }
  return table;
}

}  // namespace

const std::vector<Option>& OptionTable() {
  static const std::vector<Option> table = MakeTable();
  return table;
}

}  // namespace warren::submit
