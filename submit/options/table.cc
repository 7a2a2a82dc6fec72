// The options of all jobs, and the functions that store their values.
#include "submit/options/table.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "submit/options/values.h"
#include "wire/classic.h"

namespace warren::submit {
namespace {

/// Options that are accepted for old scripts but have no effect.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWithoutEffect = {
    {{"--hdfs-tempdir", "DIR"}, {"--mesos-master", "HOST:PORT"}, {"--ship-libcxx", "DIR"}}};

/// Options of dmlc-core that set variables of the processes of one role.
constexpr std::array<std::string_view, 2> kOfOneRole = {"--env-server", "--env-worker"};

constexpr int kMaxWorkers = wire::classic::kMaxWorldSize;
constexpr double kMaxTimeoutSeconds = 1e8;

// --- storing values --------------------------------------------------------------------------------------

void RefuseVariablesOfOneRole(Options&, const std::string&) {
  throw std::runtime_error(
      "not possible: --env sets a variable for all roles; to set it for one, let the command look at DMLC_ROLE");
}

void StoreWorkerCores(Options& options, const std::string& value) {
  Count<&Options::worker_cores, 1, kMaxCount>(options, value);
  options.worker_cores_were_chosen = true;
}

/// Stores the value of --num-workers: "4" or "2:4".
void StoreWorkers(Options& options, const std::string& value) {
  const std::size_t colon = value.find(':');
  options.min_workers.reset();
  if (colon == std::string::npos) return Count<&Options::num_workers, 1, kMaxWorkers>(options, value);
  int least = 0;
  try {
    least = ParseCount(value.substr(0, colon), 1, kMaxWorkers);
    options.num_workers = ParseCount(value.substr(colon + 1), 1, kMaxWorkers);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("'{}' is not MIN:MAX: {}", value, error.what()));
  }
  if (least > options.num_workers) {
    throw std::runtime_error(fmt::format("'{}': MIN is greater than MAX", value));
  }
  options.min_workers = least;
}

template <Request request>
void Ask(Options& options, const std::string&) {
  options.request = request;
}

void StoreCluster(const std::vector<ClusterFacts>& clusters, Options& options, const std::string& value) {
  options.cluster = FindCluster(clusters, Lower(value)).name;
  options.cluster_was_chosen = true;
}

void StoreCheckData(Options& options, const std::string&) {
  options.environment.emplace_back("WARREN_CHECK_DATA", "1");
}

void StoreCompletion(Options& options, const std::string& value) {
  options.shell =
      Choose<Shell>(value, {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}});
  options.request = Request::kCompletion;
}

/// Parses a number of seconds. `zero`: the meaning of 0, for messages.
std::chrono::milliseconds ParseSeconds(const std::string& value, std::string_view zero) {
  double seconds = 0;
  const auto [end, error] = fast_float::from_chars(value.data(), value.data() + value.size(), seconds,
                                                   fast_float::chars_format::fixed);
  if (error != std::errc{} || end != value.data() + value.size() || !(seconds >= 0)) {
    throw std::runtime_error(fmt::format("'{}' is not a number of seconds (0 means: {})", value, zero));
  }
  if (seconds > kMaxTimeoutSeconds) {
    throw std::runtime_error(fmt::format("'{}' is too big (0 means: {})", value, zero));
  }
  const std::chrono::milliseconds time(static_cast<std::int64_t>(seconds * 1000));
  // A time below a millisecond must not become 0.
  return seconds > 0 && time.count() == 0 ? std::chrono::milliseconds{1} : time;
}

auto Seconds(std::chrono::milliseconds Options::*member, std::string_view zero) {
  return [=](Options& options, const std::string& value) { options.*member = ParseSeconds(value, zero); };
}

void StorePreemptionSignal(Options& options, const std::string& value) {
  constexpr std::array<std::string_view, 6> kKnown = {"ALRM", "HUP", "INT", "USR1", "USR2", "XCPU"};
  const std::string name = value.starts_with("SIG") ? value.substr(3) : value;
  if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) {
    throw std::runtime_error(fmt::format("'{}' is not {}; SIGTERM always counts", value,
                                         fmt::join(kKnown.begin(), kKnown.end(), ", ")));
  }
  options.preemption_signal = name;
}

void StorePreemptionNotice(Options& options, const std::string& value) {
  const bool is_url =
      (value.starts_with("http://") || value.starts_with("https://")) && !value.ends_with("//");
  if (!is_url && (value.empty() || value.find("://") != std::string::npos)) {
    throw std::runtime_error(fmt::format("'{}' is neither a file nor an http URL", value));
  }
  options.preemption_notice = value;
}

void StoreWorkerPorts(Options& options, const std::string& value) {
  constexpr int kMostPort = 65535;
  const std::size_t colon = value.find(':');
  if (colon == std::string::npos) throw std::runtime_error(fmt::format("'{}' is not FIRST:LAST", value));
  const int first = ParseCount(value.substr(0, colon), 1, kMostPort);
  if (ParseCount(value.substr(colon + 1), 1, kMostPort) < first) {
    throw std::runtime_error(fmt::format("'{}': FIRST is greater than LAST", value));
  }
  options.worker_ports = value;
}

/// Stores KEY=VALUE unchanged, and KEY alone with the variable's current value.
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

template <auto member>
void FileName(Options& options, const std::string& value) {
  if (value.empty()) throw std::runtime_error("the name of the file is empty");
  options.*member = value;
}

void StoreSave(Options& options, const std::string& value) {
  FileName<&Options::save_file>(options, value);
  options.request = Request::kSave;
}

void Drop(Options&, const std::string&) {}

std::vector<std::string> ClusterNames(const std::vector<ClusterFacts>& clusters) {
  std::vector<std::string> names;
  for (const ClusterFacts& cluster : clusters) names.push_back(cluster.name);
  return names;
}

std::string ClusterHelp(const std::vector<ClusterFacts>& clusters) {
  std::string names;
  for (const ClusterFacts& cluster : clusters) {
    names += fmt::format("{}{} ({}{})", names.empty() ? "" : ", ", cluster.name, cluster.where,
                         cluster.experimental ? "; experimental" : "");
  }
  return fmt::format("Cluster that runs the processes: {}.", names);
}

/// The returned rows refer to `clusters`, which must outlive them.
std::vector<Option> MakeRows(const std::vector<ClusterFacts>& clusters) {
  static const std::string bind_default = fmt::format("{}; slurm: Slurm's own", BindName(kDefaultBind));
  std::vector<Option> options;
  const auto add = [&](const std::string& group, bool for_every_cluster, std::vector<Option> rows,
                       bool only_on_command_line = false) {
    for (Option& row : rows) {
      row.group = group;
      row.for_every_cluster = for_every_cluster;
      row.only_on_command_line = only_on_command_line;
      options.push_back(std::move(row));
    }
  };
  add("The job", true,
      {
          {.name = "--num-workers",
           .value = "N",
           .default_value = "",
           .help =
               "Number of workers to start. Required. With MIN:MAX in place of N, MAX workers are started, with ssh no more than the hosts have slots; one that is killed is started again, and the others go on with its rows or with the new process. The job fails when fewer than MIN are left. For programs that use warren.xgboost.train(..., elastic=True).",
           .store = StoreWorkers,
           .other_names = {"-n", "-np"},
           .other_form = "^[0-9]+:[0-9]+$"},
          {.name = "--cluster",
           .value = "NAME",
           .default_value = "$DMLC_SUBMIT_CLUSTER, else local",
           .help = ClusterHelp(clusters),
           .store = [&clusters](Options& given,
                                const std::string& value) { StoreCluster(clusters, given, value); },
           .other_names = {"--launcher"},
           .choices = ClusterNames(clusters)},
          {"--num-servers",
           "M",
           "0",
           "Number of parameter servers to start. With M > 0 the command runs once as the scheduler, M times as a server and N times as a worker; DMLC_ROLE holds the role of each process.",
           Count<&Options::num_servers, 0, kMaxWorkers>,
           false,
           {"-s"}},
          {"--mode", "ps|mpi", "ps",
           "With mpi, the workers exchange data without servers, as KVStore's dist_sync_mpi does, and --num-servers is ignored.",
           OneOf(&Options::mode, {{"ps", Mode::kPs}, {"mpi", Mode::kMpi}})},
          {"--local-num-attempt", "K", "0",
           "Restart a failed process up to K times before the job fails. DMLC_NUM_ATTEMPT is 0 for the first start and counts the restarts.",
           Count<&Options::num_restarts, 0, kMaxCount>},
          {"--replace-within", "SECONDS", "30",
           "With --num-workers MIN:MAX: how long the others wait for the new process of a lost worker before they go on without it. A worker that comes later takes part from the next round on.",
           Seconds(&Options::replace_within, "go on at once")},
          {"--preemption-signal", "NAME", "",
           "With --num-workers MIN:MAX: a worker that gets this signal (USR1, as Slurm's --signal sends it) leaves after its round, as with SIGTERM.",
           StorePreemptionSignal},
          {"--preemption-notice", "FILE|URL", "",
           "With --num-workers MIN:MAX: each worker looks every 5 s for this file on its host, or asks this URL, and leaves after its round when the file exists or the answer is a notice. Understands those of AWS, Google Cloud and Azure.",
           StorePreemptionNotice},
          {"--max-restarts", "N", "0",
           "Restart the whole job up to N times if a process fails for good or workers are missing. For programs that resume from a saved model. DMLC_NUM_ATTEMPT counts the restarts.",
           Count<&Options::max_restarts, 0, kMaxCount>},
          {"--env", "KEY=VALUE", "",
           "Set an environment variable of the processes; the value is passed on exactly as written. KEY alone passes on the current value.",
           StoreEnvironment, true},
          {"--files", "FILE", "",
           "Provide a file in the directory of the processes, under its own name. If they run in this directory, or in a shared or copied one, the file is placed there while the job runs.",
           TextList<&Options::files>, true},
          {"--archives", "FILE", "",
           "Like --files, and unpack the archive: the contents of data.tar.gz or data.zip are in data/.",
           TextList<&Options::archives>, true},
          {"--jobname", "NAME", "the base name of the program or script; with dmlc- before it in a queue",
           "Name of the job in metrics, on the page, in `warren jobs` and in the cluster's queue.",
           Text<&Options::job_name>},
          {"--check-data", "", "",
           "Print a table of what each worker has read with warren.data before training starts: rows, columns, ranges of labels and features.",
           StoreCheckData},
          {"--detach", "", "",
           "Print the job's ID and return as soon as the job's tracker listens; the job goes on in the background, without this terminal. Its output goes to launcher.log and worker-0.log and so on in --log-dir, by default a folder next to the job's record. `warren status`, `logs`, `wait` and `cancel` take the ID.",
           Flag<&Options::detach>},
          {"--until-stdin-closes", "", "",
           "End the job, as with SIGTERM, when standard input closes; with a pipe, that is when the process at its other end exits.",
           Flag<&Options::until_stdin_closes>},
          {"--dry-run", "", "", "Print the shell commands that would start the processes, and start nothing.",
           Flag<&Options::dry_run>},
      });
  add("The job", false,
      {
          {"--auto-file-cache", "on|off", "on",
           "Ship files that the command names as --files does, and replace their paths by their names. Only for clusters where processes run in directories of their own.",
           OneOf(
               &Options::auto_file_cache,
               {{"on", true}, {"off", false}, {"true", true}, {"false", false}, {"1", true}, {"0", false}})},
      });
  add("Tracker", true,
      {
          {"--host-ip", "IP|auto|dns", "",
           "Address at which processes reach the tracker: an address or a name, auto (the address of the default route) or dns (the full name of this machine). By default 127.0.0.1 with --cluster local, else the address of the route to the first host.",
           Text<&Options::host_ip>},
          {"--no-tracker", "", "",
           "Start no tracker, for programs that find each other by themselves, such as MPI programs.",
           Flag<&Options::no_tracker>},
          {"--port", "P", "9091",
           "First port that the tracker tries; 0 means any free port. By default the tracker starts at a random port between 9091 and --port-end, so that workers left over from an earlier job do not reach it. The scheduler of a parameter-server job gets a free port of the same range.",
           Count<&Options::port, 0, 65535>},
          {"--port-end", "P", "9999", "Last port that the tracker tries.",
           Count<&Options::port_end, 0, 65535>},
          {"--worker-ports", "FIRST:LAST", "",
           "Ports at which the workers listen for each other, for hosts with firewalls: at least one for each worker of a host, and two for workers whose XGBoost, from 3.3 on, opens links of its own. By default any port that the kernel chooses.",
           StoreWorkerPorts},
          {"--sortby", "host|task", "host", "Order in which workers get their ranks.",
           OneOf(&Options::sort_by, {{"host", tracker::SortBy::kHost}, {"task", tracker::SortBy::kTask}})},
          {"--tls", "", "",
           "Encrypt the connections of Warren's engine, to the tracker and between workers, with TLS 1.3; the key is derived from the job token. Requires OpenSSL 3 on every host. XGBoost's own connections are not encrypted.",
           Flag<&Options::tls>},
          {"--admit", "token|user|hosts|any", "user",
           "Workers that the tracker accepts without the job token and without warren.xgboost, such as programs that use XGBoost's own communication: none (token), this user's processes on this machine (user), all from the job's hosts (hosts; ssh, mpi with a host file, slurm in an allocation), or any.",
           OneOf(&Options::admit, {{"token", tracker::Admit::kToken},
                                   {"user", tracker::Admit::kUser},
                                   {"hosts", tracker::Admit::kHosts},
                                   {"any", tracker::Admit::kAny}})},
          {"--timeout", "SECONDS", "1800",
           "Give up if workers have not contacted the tracker for this long. 0 waits forever; use it if the command never contacts the tracker.",
           Seconds(&Options::timeout, "wait forever")},
      });
  add("Output and logs", true,
      {
          {"--log-dir", "DIR", "",
           "Also write the output of each process to DIR/worker-0.log and so on, and what the tracker prints to DIR/tracker.log. DIR is created if it does not exist; logs of an earlier job are moved to DIR/earlier.",
           Text<&Options::log_dir>},
          {"--color", "auto|always|never", "auto",
           "Colour the [rank] before each line of output; auto means on a terminal only.",
           OneOf(&Options::color, {{"auto", ColorChoice::kAuto},
                                   {"always", ColorChoice::kAlways},
                                   {"never", ColorChoice::kNever}})},
          {"--log-level", "INFO|DEBUG", "INFO",
           "Level of detail of the messages from dmlc-submit and the tracker.",
           OneOf(&Options::debug_log, {{"info", false}, {"debug", true}})},
          {"--log-file", "FILE", "",
           "Also write the messages of dmlc-submit and the tracker, and what the tracker prints, to FILE, with the time.",
           Text<&Options::log_file>},
          {"--hang-timeout", "SECONDS", "60",
           "Report a worker that makes no progress for this long, with what is known about it: stopped, waiting for a disk, or on a host that cannot be reached. 0 turns it off.",
           Seconds(&Options::hang_timeout, "no reports")},
          {"--dump-on-hang", "", "",
           "Also show the stack of that worker, with py-spy and gdb if its host has them. SIGUSR2 makes dmlc-submit show the stacks of all workers at any time.",
           Flag<&Options::dump_on_hang>},
          {"--timeline", "FILE", "",
           "Write the collective calls of all ranks to FILE as trace events on one clock, for Perfetto (ui.perfetto.dev) and chrome://tracing. Covers workers that use Warren's engine.",
           Text<&Options::timeline>},
          {"--metrics-port", "[HOST:]PORT", "",
           "Serve Prometheus metrics at http://HOST:PORT/metrics, without authentication. HOST is 127.0.0.1 by default; write IPv6 addresses in []. Port 0 means any free port.",
           StoreMetricsPort},
          {.name = "--dashboard",
           .value = "[=[HOST:]PORT]",
           .default_value =
               "any free port of 127.0.0.1, or the port of --metrics-port if that is on this machine only",
           .help =
               "Serve a page about the running job for a browser; the printed address contains the token that opens it. With --log-dir, the page is kept in DIR/job.html.",
           .store = StoreDashboard,
           .value_is_optional = true},
          {"--log-format", "text|json", "text",
           "With json, each line of the output and of --log-file is a JSON object with the time, the source and the text. The output of --dry-run stays as it is.",
           OneOf(&Options::log_format, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}})},
          {"--quiet",
           "",
           "",
           "Print only warnings and errors of dmlc-submit itself. --log-file still gets all messages.",
           Flag<&Options::quiet>,
           false,
           {"-q"}},
          {"--show-all-errors", "", "",
           "Show the errors of all processes as they come. By default, errors that follow from the first failure are summed up in one line, and the output of the first failure comes last.",
           Flag<&Options::show_all_errors>},
      });
  add("Resources on a cluster", true,
      {
          {"--worker-cores", "N", "local, ssh, mpi: an equal share of the host's cores; else 1",
           "Processor cores for each worker. Also sets OMP_NUM_THREADS, unless the environment or --env does.",
           StoreWorkerCores},
      });
  add("Resources on a cluster", false,
      {
          {"--bind", "core|numa|none", bind_default,
           "Cores that each process may use: as many cores of its own as it has threads, all cores of one NUMA node, or any core.",
           OneOf(&Options::bind, {{"core", Bind::kCore}, {"numa", Bind::kNuma}, {"none", Bind::kNone}})},
          {"--worker-memory", "SIZE", "the cluster's own; 1g with yarn",
           "Memory for each worker, such as 512m or 1.5g.", Memory<&Options::worker_memory_bytes>},
          {"--server-cores", "N", "1", "Processor cores for each parameter server.",
           Count<&Options::server_cores, 1, kMaxCount>},
          {"--server-memory", "SIZE", "the cluster's own; 1g with yarn", "Memory for each parameter server.",
           Memory<&Options::server_memory_bytes>},
          {"--worker-gpus", "N", "0", "GPUs for each worker.", Count<&Options::worker_gpus, 0, kMaxCount>},
          {"--time-limit", "TIME", "the cluster's own",
           "Time limit of the job, in the cluster's own form: 90 (minutes) or 1-12:00:00 for slurm, 1:30:00 or seconds for sge, seconds for kubernetes.",
           Text<&Options::time_limit>},
          {"--queue", "NAME", "the cluster's own", "Queue for the job.", Text<&Options::queue>},
          {"--host-file",
           "FILE",
           "$HOSTFILE",
           "File with the hosts, one per line: [user@]host [slots=N] [max_slots=N] [port=N]. Also accepted: node[01-12], node1,node2, node1*4, user@host:port, [IPv6]:port. # starts a comment.",
           Text<&Options::host_file>,
           false,
           {"-H", "--hostfile"}},
      });
  for (const ClusterFacts& cluster : clusters) {
    add(fmt::format("Only with --cluster {}{}", cluster.name, cluster.experimental ? " (experimental)" : ""),
        false, cluster.own_options);
  }
  add("Job files", true,
      {
          {"--job", "FILE", "",
           "Read options and the command from a YAML file. An option on the command line replaces the file's, with all its values if it may be given several times; so does a command.",
           FileName<&Options::job_file>},
          {"--save", "FILE", "",
           "Write the options and the command, including those of --job, to FILE as a job file (- means standard output), and start nothing. A file with other content is not overwritten.",
           StoreSave},
      },
      true);
  add("Help", true,
      {
          {"--help", "", "", "Print this help.", Ask<Request::kHelp>, false, {"-h"}},
          {"--help-markdown", "", "", "Print docs/reference/options.md.", Ask<Request::kHelpMarkdown>},
          {"--help-environment", "", "", "Print the table of environment variables, in Markdown.",
           Ask<Request::kHelpEnvironment>},
          {"--help-man", "", "", "Print the manual page dmlc-submit.1.", Ask<Request::kHelpMan>},
          {"--help-schema", "", "", "Print docs/reference/job.schema.json, the JSON Schema of job files.",
           Ask<Request::kHelpSchema>},
          {"--completion", "bash|zsh|fish", "", "Print the completion script for that shell.",
           StoreCompletion},
          {"--show-hosts", "", "",
           "Print the hosts of --host-file or --host-discovery as they are understood, one per line, and start nothing.",
           Ask<Request::kShowHosts>},
          {"--version", "", "", "Print the version.", Ask<Request::kVersion>, false, {"-V"}},
      },
      true);
  for (const auto& [name, value] : kWithoutEffect) {
    add("Without effect", false, {{name, value, "", "Accepted for old scripts; has no effect.", Drop}});
  }
  for (const std::string_view name : kOfOneRole) {
    add("Without effect", false,
        {{name, "K:V,...", "", "Refused, with what to do in its place: an option of dmlc-core.",
          RefuseVariablesOfOneRole}});
  }
  return options;
}

}  // namespace

OptionTable::OptionTable(std::vector<ClusterFacts> clusters)
    : clusters_(std::move(clusters)), rows_(MakeRows(clusters_)) {}

const Option* OptionTable::Find(std::string_view name) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Option& row) {
    return row.name == name ||
           std::find(row.other_names.begin(), row.other_names.end(), name) != row.other_names.end();
  });
  return found == rows_.end() ? nullptr : &*found;
}

}  // namespace warren::submit
