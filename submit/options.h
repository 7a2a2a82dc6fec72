// What users may ask of dmlc-submit: one table of options that makes the parser, --help and
// docs/reference/options.md.
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

enum class ColorChoice { kAuto, kAlways, kNever };
/// What ssh does about hosts whose keys it does not know, or knows otherwise.
enum class HostKeys { kStrict, kAcceptNew, kIgnore };
/// How the processes of a job for MXNet's KVStore work together.
enum class Mode {
  kPs,   ///< by parameter servers, where there are any
  kMpi,  ///< the workers among each other: there are no servers
};
/// What is asked for besides running a job.
enum class Request {
  kRun,
  kHelp,
  kHelpMarkdown,
  kHelpMan,
  kCompletion,
  kVersion,
  kHelpEnvironment,
  kShowHosts
};
/// For whom --completion writes.
enum class Shell { kBash, kZsh, kFish };

/// What processes that dmlc-submit binds itself are bound to without --bind. None: every job deals out cores
/// from the first that it may use, so that two jobs on a machine would share theirs while others are idle.
inline constexpr Bind kDefaultBind = Bind::kNone;

struct Options {
  Request request = Request::kRun;
  Shell shell = Shell::kBash;       ///< with kCompletion
  std::string cluster = "local";    ///< the name of one in the registry (cluster/clusters.h)
  bool cluster_was_chosen = false;  ///< by --cluster or DMLC_SUBMIT_CLUSTER
  std::vector<std::string> command;

  int num_workers = 0;
  int num_servers = 0;
  Mode mode = Mode::kPs;
  int num_restarts = 0;  ///< how often each process may be started again: --local-num-attempt
  int max_restarts = 0;  ///< how often the whole job may be started again
  std::vector<std::pair<std::string, std::string>> environment;  ///< --env, in the order given
  std::vector<std::string> files;
  std::vector<std::string> archives;
  bool auto_file_cache = true;

  bool no_tracker = false;
  std::string host_ip;
  std::uint16_t port = 9091;
  bool port_was_chosen = false;  ///< else the tracker begins anywhere in the range
  std::uint16_t port_end = 9999;
  tracker::SortBy sort_by = tracker::SortBy::kHost;
  bool tls = false;
  tracker::Admit admit = tracker::Admit::kUser;
  std::chrono::milliseconds timeout{std::chrono::seconds{1800}};     ///< zero: for ever
  std::chrono::milliseconds hang_timeout{std::chrono::seconds{60}};  ///< zero: nobody looks

  bool dry_run = false;
  bool debug_log = false;
  bool dump_on_hang = false;
  bool quiet = false;
  bool show_all_errors = false;
  std::string log_file;
  std::string log_dir;
  std::string timeline;               ///< --timeline: a file
  std::optional<WebAddress> metrics;  ///< --metrics-port
  /// --dashboard; without a value: where --metrics-port is, or any free one
  std::optional<WebAddress> dashboard;
  ColorChoice color = ColorChoice::kAuto;
  LogFormat log_format = LogFormat::kText;

  int worker_cores = 1;
  bool worker_cores_were_chosen = false;
  std::optional<Bind> bind;  ///< none: kDefaultBind, or what the cluster's launcher does by itself
  int server_cores = 1;
  int worker_gpus = 0;
  std::optional<std::uint64_t> worker_memory_bytes;
  std::optional<std::uint64_t> server_memory_bytes;
  std::string time_limit;
  std::string job_name;
  std::string queue;
  std::string host_file;
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
  std::string kube_namespace;  ///< empty: that of kubectl's context
  std::string kube_worker_image;
  std::string kube_server_image;   ///< empty: the workers'
  std::string kube_tracker_image;  ///< empty: the workers'
  std::string kube_manifest;       ///< a file to write in place of running the job
  bool kube_trainjob = false;      ///< as a TrainJob of Kubeflow Trainer
  std::string kube_runtime = "xgboost-distributed";
  std::vector<std::string> kube_args;
  std::string kube_worker_template;
  std::string kube_server_template;
  std::string kube_tracker_template;
  std::string yarn_app_classpath;
  std::string yarn_app_dir;
  /// Values of the options that have no field here, by name, in the order given; for a flag empty ones.
  std::map<std::string, std::vector<std::string>, std::less<>> texts;

  /// Options that were given although they do nothing for `cluster`.
  std::vector<std::string> ignored;
};

/// One row of the table.
struct Option {
  std::string_view name;           ///< with its dashes: "--num-workers"
  std::string_view value;          ///< what stands for the value in the help; empty: a flag
  std::string_view default_value;  ///< as shown; empty: none
  std::string help;                ///< one sentence or two
  /// Puts a value into the options. Throws std::runtime_error that says what the value should be. None: it
  /// goes to Options::texts.
  void (*store)(Options& options, const std::string& value) = nullptr;
  bool repeatable = false;
  std::vector<std::string_view> other_names = {};  ///< by which it is known, too: those of MXNet's launch.py
  std::string group = {};                          ///< heading in the help; given by the table
  /// A value stands behind "=" or is left out, and is then stored as an empty one.
  bool value_is_optional = false;
  bool for_every_cluster = false;  ///< else where its entry in the registry says so; given by the table
};

/// Every option: those for all, those of each cluster in the registry.
const std::vector<Option>& OptionTable();

/// The command line cannot be understood. `what()` is for the user; dmlc-submit exits with 2.
using cli::UsageError;

/// Reads the command line without the program's name, options in all forms of cli/arguments.h. Options end at
/// the first word that is none; from there on (or after "--") everything is the command, word for word.
/// DMLC_SUBMIT_CLUSTER and `--env KEY` are looked up in the environment. Throws UsageError.
Options ParseOptions(const std::vector<std::string>& arguments);

/// The text of --help, for a terminal.
std::string HelpText();
/// The whole of docs/reference/options.md.
std::string HelpMarkdown();
/// The manual page, dmlc-submit.1, of the program's version.
std::string HelpMan(std::string_view version);

}  // namespace warren::submit
