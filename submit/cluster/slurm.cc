#include "submit/cluster/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "submit/cluster/gang.h"
#include "submit/cluster/script.h"
#include "submit/options/values.h"
#include "submit/process/capture.h"
#include "submit/process/command.h"

namespace warren::submit {
namespace {

/// Maximum number of nodes whose names are resolved; one that resolves on this machine is enough.
constexpr std::size_t kNodesToAsk = 8;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

/// The resources for the gang's processes, as options that both srun and sbatch accept.
std::vector<std::string> Resources(const GangPlan& plan) {
  const Options& options = *plan.options;
  const auto& nodes = plan.of_workers() ? options.slurm_worker_nodes : options.slurm_server_nodes;
  std::vector<std::string> words = {fmt::format("--ntasks={}", plan.count),
                                    fmt::format("--cpus-per-task={}", plan.cores())};
  if (nodes) words.push_back(fmt::format("--nodes={}", *nodes));
  if (const auto memory = plan.mebibytes_per_core())
    words.push_back(fmt::format("--mem-per-cpu={}M", *memory));
  if (plan.of_workers() && options.worker_gpus > 0)
    words.push_back(fmt::format("--gpus-per-task={}", options.worker_gpus));
  return words;
}

/// The number in a job's ID such as "12" or "12;cluster".
std::string NumberOf(const std::string& id) {
  return id.substr(0, id.find(';'));
}

/// A Slurm command for the cluster that the job's ID names, if it names one.
std::vector<std::string> OnCluster(const char* program, const std::string& id,
                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program};
  const std::size_t semicolon = id.find(';');
  if (semicolon != std::string::npos) words.insert(words.end(), {"-M", id.substr(semicolon + 1)});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// Adds srun's option for --bind. Only workers are bound: servers run in another step, which would bind them
/// to the same cores as the first workers.
void AddBinding(const GangPlan& plan, std::vector<std::string>& srun) {
  if (!plan.options->bind || !plan.of_workers()) return;
  constexpr std::array<std::pair<Bind, const char*>, 3> kNames = {
      {{Bind::kNone, "none"}, {Bind::kCore, "cores"}, {Bind::kNuma, "ldoms"}}};
  for (const auto& [bind, name] : kNames) {
    if (bind == *plan.options->bind) srun.push_back(fmt::format("--cpu-bind={}", name));
  }
}

/// Whether dmlc-submit runs inside a Slurm allocation (salloc or a batch job).
bool InSlurmAllocation() {
  return std::getenv("SLURM_JOB_ID") != nullptr;
}

/// The nodes of the allocation or, outside an allocation, of the chosen queue or, if none is chosen, of the
/// whole Slurm cluster, by the names or addresses with which Slurm reaches them.
std::vector<std::string> SlurmNodes(const Options& options) {
  std::vector<std::string> ask = {"sinfo", "-h", "-N", "-o", "%o"};
  if (InSlurmAllocation()) {
    if (const char* nodes = std::getenv("SLURM_JOB_NODELIST")) ask.insert(ask.end(), {"-n", nodes});
  } else if (!options.queue.empty()) {
    ask.insert(ask.end(), {"-p", options.queue});
  }
  return Lines(Capture(ask, SearchPath()).out);
}

/// The address at which the processes reach this machine: its address on the route to a node or, if no node
/// is known, on the default route.
tracker::Reached RouteToSlurmNodes(const Options& options) {
  std::vector<std::string> nodes = SlurmNodes(options);
  if (nodes.size() > kNodesToAsk) nodes.resize(kNodesToAsk);
  return tracker::AddressTowards(nodes);
}

}  // namespace

Launch SlurmLaunch(const GangPlan& plan, bool in_allocation) {
  const Options& options = *plan.options;
  const ScriptInEnvironment script =
      InEnvironment(plan.script({.rank = "$SLURM_PROCID",
                                 .local_rank = "$SLURM_LOCALID",
                                 .local_size = "$(tasks_of \"$SLURM_NODEID\" \"$SLURM_STEP_TASKS_PER_NODE\")",
                                 .cores = {.workers = "1", .cores = "${SLURM_CPUS_PER_TASK:-}"}}));
  // srun must not end the other tasks when one fails, since dmlc-submit decides whether to end them.
  // --export=ALL passes the script on even if the user's environment restricts exports (SLURM_EXPORT_ENV).
  std::vector<std::string> srun = {"srun", "--kill-on-bad-exit=0", "--wait=0", "--input=none",
                                   "--export=ALL"};
  AddBinding(plan, srun);
  // In an elastic job, a failed node must not end the workers on the other nodes.
  if (options.min_workers) srun.push_back("--no-kill");
  Launch launch;
  if (in_allocation) {
    launch.name = "srun";
    launch.environment = script.variables;
    launch.words = srun;
    launch.words.push_back("--overlap");  // servers and workers are two concurrent steps of one allocation
    for (std::string& word : Resources(plan)) launch.words.push_back(std::move(word));
    launch.words.push_back(fmt::format("--job-name={}", plan.job_name));
    launch.words.insert(launch.words.end(), options.slurm_args.begin(), options.slurm_args.end());
    launch.words.insert(launch.words.end(), script.command.begin(), script.command.end());
    return launch;
  }
  launch.name = "sbatch";
  // Options on the command line take precedence over the user's SBATCH_* variables; directives in the script
  // would not.
  launch.words = {"sbatch", "--parsable", fmt::format("--job-name={}", plan.job_name)};
  for (std::string& word : Resources(plan)) launch.words.push_back(std::move(word));
  if (!options.queue.empty()) launch.words.push_back(fmt::format("--partition={}", options.queue));
  if (!options.time_limit.empty()) launch.words.push_back(fmt::format("--time={}", options.time_limit));
  if (options.min_workers) launch.words.emplace_back("--no-kill");
  launch.words.insert(launch.words.end(), {"--requeue", "--open-mode=append"});
  const std::string log = options.log_dir.empty()
                              ? "/dev/null"
                              : (std::filesystem::absolute(options.log_dir) / "slurm-%j.log").string();
  launch.words.push_back(fmt::format("--output={}", log));
  launch.words.insert(launch.words.end(), options.slurm_args.begin(), options.slurm_args.end());
  launch.input = "#!/bin/sh\n";
  for (const auto& [name, value] : script.variables) {
    launch.input += fmt::format("export {}={}\n", name, ShellQuote(value));
  }
  // Since Slurm 22.05, srun does not inherit --cpus-per-task from the job.
  srun.push_back(fmt::format("--cpus-per-task={}", plan.cores()));
  srun.insert(srun.end(), script.command.begin(), script.command.end());
  launch.input += fmt::format("exec {}\n", ShellCommand(srun));
  launch.queue = Queue{
      .name = "Slurm",
      .id = [](std::string_view printed) -> std::optional<std::string> {
        const std::string id = Trimmed(printed);  // "12", or "12;cluster" with --clusters
        const std::string number = NumberOf(id);
        const bool valid = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
        return valid ? std::optional(id) : std::nullopt;
      },
      .cancel = [](const std::string& id) { return OnCluster("scancel", id, {NumberOf(id)}); },
      .ask =
          [](const std::string& id) {
            return OnCluster("squeue", id, {"-h", "-j", NumberOf(id), "-t", "all", "-o", "%T|%r"});
          },
      .report = ReadSqueue};
  return launch;
}

std::optional<JobReport> ReadSqueue(const std::string& /*id*/, std::string_view printed, int exit_code) {
  // With -M, squeue prints a line "CLUSTER: name" first, even with -h.
  if (exit_code == 0 && printed.starts_with("CLUSTER:"))
    printed.remove_prefix(std::min(printed.find('\n'), printed.size()));
  const std::string line = Trimmed(printed);
  if (exit_code != 0) {
    if (line.find("Invalid job id") == std::string::npos) return std::nullopt;  // the controller may be down
    return JobReport{JobState::kOver, "Slurm no longer knows it"};
  }
  if (line.empty()) return JobReport{JobState::kOver, "Slurm no longer knows it"};
  const std::size_t bar = line.find('|');
  const std::string state = line.substr(0, bar);
  const std::string reason = bar == std::string::npos ? "" : line.substr(bar + 1);
  const std::string words =
      reason.empty() || reason == "None" ? state : fmt::format("{} ({})", state, reason);
  constexpr std::array<std::string_view, 6> kPending = {"PENDING",     "REQUEUED",     "REQUEUE_HOLD",
                                                        "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
  constexpr std::array<std::string_view, 7> kRunning = {"RUNNING",   "CONFIGURING", "SUSPENDED", "RESIZING",
                                                        "SIGNALING", "STAGE_OUT",   "STOPPED"};
  if (state == "COMPLETING") return std::nullopt;  // the job will be over, or pending again
  if (std::find(kPending.begin(), kPending.end(), state) != kPending.end()) {
    return JobReport{JobState::kPending, words};
  }
  if (std::find(kRunning.begin(), kRunning.end(), state) != kRunning.end()) {
    return JobReport{JobState::kRunning, words};
  }
  constexpr std::array<std::string_view, 12> kOver = {
      "COMPLETED", "FAILED",    "TIMEOUT",  "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
      "BOOT_FAIL", "CANCELLED", "DEADLINE", "REVOKED",   "LAUNCH_FAILED", "RECONFIG_FAIL"};
  if (std::find(kOver.begin(), kOver.end(), state) == kOver.end()) return std::nullopt;  // unknown state
  return JobReport{JobState::kOver, words};
}

ClusterEntry SlurmEntry() {
  ClusterEntry entry;
  entry.name = "slurm";
  entry.may_lose_workers = true;
  entry.where = "Slurm nodes";
  LaunchTogether(entry, [](const Options&) -> MakeLaunch {
    return [inside = InSlurmAllocation()](const GangPlan& plan) { return SlurmLaunch(plan, inside); };
  });
  entry.host = [](const Options& options) { return HostByRoute(RouteToSlurmNodes(options)); };
  entry.known_hosts = [](const Options& options) {
    return InSlurmAllocation() ? SlurmNodes(options) : std::vector<std::string>();
  };
  // An allocation already has its partition and its time limit.
  entry.ignores = [](const Options&, std::string_view name) {
    return InSlurmAllocation() && (name == "--queue" || name == "--time-limit");
  };
  entry.core_sharing = CoreSharing::kTheirHost;
  entry.shared_options = {"--bind",        "--worker-memory", "--server-cores", "--server-memory",
                          "--worker-gpus", "--time-limit",    "--queue"};
  entry.own_options = {
      {"--slurm-args", "WORDS", "",
       "More options for sbatch, or for srun inside an allocation, such as '--account=a --constraint=fast'.",
       Words<&Options::slurm_args>, true},
      {"--slurm-worker-nodes", "N", "Slurm's choice", "Number of nodes for the workers.",
       Count<&Options::slurm_worker_nodes, 1, kMaxCount>},
      {"--slurm-server-nodes", "N", "Slurm's choice", "Number of nodes for the parameter servers.",
       Count<&Options::slurm_server_nodes, 1, kMaxCount>},
  };
  return entry;
}

}  // namespace warren::submit
