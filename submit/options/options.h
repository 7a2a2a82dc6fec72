// The values of all options of dmlc-submit for one job.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "submit/monitor/web_address.h"
#include "submit/output/line_format.h"
#include "submit/process/binding.h"
#include "tracker/admission.h"
#include "tracker/job.h"

namespace warren::submit {

/// The policy of ssh for hosts whose keys are unknown or have changed.
enum class HostKeys { kStrict, kAcceptNew, kIgnore };
/// How the processes of a job for MXNet's KVStore exchange data.
enum class Mode {
  kPs,   ///< through parameter servers, if there are any
  kMpi,  ///< among the workers; there are no servers
};
/// The action that the command line requests.
enum class Request {
  kRun,
  kHelp,
  kHelpMarkdown,
  kHelpMan,
  kHelpSchema,
  kCompletion,
  kVersion,
  kHelpEnvironment,
  kShowHosts,
  kSave
};
/// The shell for which --completion writes a script.
enum class Shell { kBash, kZsh, kFish };

/// The default of --bind for processes that dmlc-submit itself binds. It is kNone because every job assigns
/// cores starting from the first that it may use: two jobs on one machine would share cores while other cores
/// are idle.
inline constexpr Bind kDefaultBind = Bind::kNone;

struct Options {
  Request request = Request::kRun;
  Shell shell = Shell::kBash;       ///< valid with kCompletion
  std::string cluster = "local";    ///< the name of a cluster in the registry (cluster/clusters.h)
  bool cluster_was_chosen = false;  ///< by --cluster or DMLC_SUBMIT_CLUSTER
  bool cluster_is_from_environment = false;
  std::string job_file;   ///< --job: the file that supplied further options; empty: none
  std::string save_file;  ///< with kSave: the job file to write; "-": standard output
  std::string saved_job;  ///< with kSave: the content of that file
  std::vector<std::string> command;

  int num_workers = 0;  ///< if min_workers is set: the maximum
  /// With --num-workers MIN:MAX: the job continues while at least this many workers are left.
  std::optional<int> min_workers;
  std::chrono::milliseconds replace_within{std::chrono::seconds{30}};  ///< used if min_workers is set
  std::string preemption_signal;  ///< used if min_workers is set: "USR1"; empty: SIGTERM alone
  std::string preemption_notice;  ///< used if min_workers is set: a file or URL; empty: none
  int num_servers = 0;
  Mode mode = Mode::kPs;
  int num_restarts = 0;  ///< --local-num-attempt: the maximum number of restarts of each process
  int max_restarts = 0;  ///< the maximum number of restarts of the whole job
  std::vector<std::pair<std::string, std::string>> environment;  ///< --env, in the order given
  std::vector<std::string> files;
  std::vector<std::string> archives;
  bool auto_file_cache = true;

  bool no_tracker = false;
  std::string host_ip;
  std::uint16_t port = 9091;
  bool port_was_chosen = false;  ///< if not, the tracker first tries a random port of the range
  std::uint16_t port_end = 9999;
  bool port_end_was_chosen = false;
  tracker::SortBy sort_by = tracker::SortBy::kHost;
  std::string worker_ports;  ///< "FIRST:LAST"; empty: any
  bool tls = false;
  tracker::Admit admit = tracker::Admit::kUser;
  std::chrono::milliseconds timeout{std::chrono::seconds{1800}};     ///< zero: forever
  std::chrono::milliseconds hang_timeout{std::chrono::seconds{60}};  ///< zero: no hang detection

  bool dry_run = false;
  bool detach = false;
  bool until_stdin_closes = false;
  bool debug_log = false;
  bool dump_on_hang = false;
  bool quiet = false;
  bool show_all_errors = false;
  std::string log_file;
  std::string log_dir;
  std::string timeline;               ///< --timeline: the file to write
  std::optional<WebAddress> metrics;  ///< --metrics-port; nullopt if not given
  /// --dashboard; without a value: the address of --metrics-port if that is local, else any free port
  std::optional<WebAddress> dashboard;
  ColorChoice color = ColorChoice::kAuto;
  LogFormat log_format = LogFormat::kText;

  int worker_cores = 1;
  bool worker_cores_were_chosen = false;
  std::optional<Bind> bind;  ///< nullopt: kDefaultBind, or the default of the cluster's launcher
  int server_cores = 1;
  int worker_gpus = 0;
  std::optional<std::uint64_t> worker_memory_bytes;
  std::optional<std::uint64_t> server_memory_bytes;
  std::string time_limit;
  std::string job_name;
  std::string queue;
  std::string host_file;
  std::string host_discovery;    ///< the command that prints the hosts; empty: none
  std::string discovered_hosts;  ///< the output of that command at the start of the job
  std::string sync_dst_dir;
  HostKeys ssh_host_keys = HostKeys::kStrict;
  std::vector<std::string> ssh_options;
  std::string mpirun = "mpirun";
  std::vector<std::string> mpirun_args;
  std::string sge_log_dir;
  std::vector<std::string> sge_args;
  std::vector<std::string> slurm_args;
  std::vector<std::string> yarn_args;
  std::optional<int> slurm_worker_nodes;
  std::optional<int> slurm_server_nodes;
  std::string kube_namespace;  ///< empty: the namespace of kubectl's context
  std::string kube_worker_image;
  std::string kube_server_image;   ///< empty: the workers' image
  std::string kube_tracker_image;  ///< empty: the workers' image
  std::string kube_manifest;       ///< a file to write instead of running the job
  bool kube_trainjob = false;      ///< write a TrainJob for Kubeflow Trainer instead of Jobs
  std::string kube_runtime = "xgboost-distributed";
  std::vector<std::string> kube_args;
  std::string kube_worker_template;
  std::string kube_server_template;
  std::string kube_tracker_template;
  std::string yarn_app_classpath;
  std::string yarn_app_dir;
  /// Values of options that have no field here, by name, in the order given; empty strings for flags.
  std::map<std::string, std::vector<std::string>, std::less<>> texts;

  /// Options that were given but have no effect with `cluster` and the other options.
  std::vector<std::string> ignored;

  bool operator==(const Options&) const = default;
};

/// Thrown if the command line or the job file is invalid. `what()` is for the user; dmlc-submit exits with 2.
using cli::UsageError;

}  // namespace warren::submit
