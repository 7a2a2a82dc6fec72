#include "submit/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "submit/cluster/clusters.h"
#include "submit/process/cores.h"
#include "wire/job_token.h"

namespace warren::submit {
namespace {

constexpr std::string_view kAttemptVariable = "DMLC_NUM_ATTEMPT";
constexpr std::string_view kMaxAttemptVariable = "DMLC_MAX_ATTEMPT";
constexpr std::string_view kUnbufferedVariable = "PYTHONUNBUFFERED";
/// Interval of the workers' reports (wire/report.h). A value set by the user takes precedence.
constexpr std::string_view kReportVariable = "WARREN_REPORT_SECONDS";
constexpr std::string_view kReportTimelineVariable = "WARREN_REPORT_TIMELINE";
/// All variables that a job may set. One that is inherited (a job within a job) but not set by this job would
/// send the process to the wrong tracker.
constexpr std::array<std::string_view, 23> kJobVariables = {
    "DMLC_TRACKER_URI",
    "DMLC_TRACKER_PORT",
    "DMLC_NUM_WORKER",
    "DMLC_NUM_SERVER",
    "DMLC_ROLE",
    "DMLC_TASK_ID",
    kAttemptVariable,
    kMaxAttemptVariable,
    "DMLC_JOB_CLUSTER",
    "DMLC_PS_ROOT_URI",
    "DMLC_PS_ROOT_PORT",
    "DMLC_NODE_HOST",
    wire::kTokenVariable,
    kRankVariable.torch,
    kWorldSizeVariable.torch,
    kLocalRankVariable.torch,
    kLocalSizeVariable.torch,
    kRankVariable.horovod,
    kWorldSizeVariable.horovod,
    kLocalRankVariable.horovod,
    kLocalSizeVariable.horovod,
    kCrossRankVariable,
    kCrossSizeVariable,
};

bool Names(const tracker::Environment& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(), [&](const auto& e) { return e.first == name; });
}

void CheckUserEnvironment(const Options& options) {
  for (const auto& [name, value] : options.environment) {
    if (std::find(kJobVariables.begin(), kJobVariables.end(), name) != kJobVariables.end()) {
      throw UsageError(
          fmt::format("--env {}: dmlc-submit sets this variable itself, for each process", name));
    }
  }
}

/// The user's variables with the last value of each, followed by the job's.
tracker::Environment EnvironmentOf(const Options& options, const tracker::JobAddress& address,
                                   const tracker::TaskIdentity& task) {
  tracker::Environment environment;
  for (const auto& [name, value] : options.environment) {
    const auto same = std::find_if(environment.begin(), environment.end(),
                                   [&name = name](const auto& e) { return e.first == name; });
    if (same == environment.end()) {
      environment.emplace_back(name, value);
    } else {
      same->second = value;
    }
  }
  for (auto& variable : tracker::TaskEnvironment(address, task)) environment.push_back(std::move(variable));
  return environment;
}

std::string LogFile(const std::string& log_dir, tracker::Role role, int task_id) {
  if (log_dir.empty()) return {};
  const std::string name = role == tracker::Role::kScheduler
                               ? "scheduler.log"
                               : fmt::format("{}-{}.log", tracker::RoleName(role), task_id);
  return (std::filesystem::path(log_dir) / name).string();
}

/// Adds the variables of torchrun and horovodrun, as far as they are known here; the cluster adds the rest.
void AddPlaceEnvironment(const Options& options, const PlanContext& context, PlannedProcess& process) {
  tracker::Environment& environment = process.environment;
  const std::string workers = std::to_string(options.num_workers);
  AddPlaceVariable(kRankVariable, std::to_string(process.task_id), environment);
  AddPlaceVariable(kWorldSizeVariable, workers, environment);
  if (!Names(options.environment, kMasterPortVariable))
    environment.emplace_back(kMasterPortVariable, std::to_string(context.master_port));
  if (!ClusterOf(options).runs_here) return;
  AddPlaceVariable(kLocalRankVariable, std::to_string(process.task_id), environment);
  AddPlaceVariable(kLocalSizeVariable, workers, environment);
  environment.emplace_back(kCrossRankVariable, "0");
  environment.emplace_back(kCrossSizeVariable, "1");
  if (!NamesMaster(process)) environment.emplace_back(kMasterVariable, kLoopback);
}

PlannedProcess PlanOne(const Options& options, const PlanContext& context, tracker::Role role, int task_id) {
  PlannedProcess process;
  process.role = role;
  process.task_id = task_id;
  process.file = context.command.file;
  process.argv = options.command;
  process.argv.front() = context.command.argv0;
  process.python_environment = context.command.python_environment;
  process.environment = EnvironmentOf(options, context.address, {role, task_id, 0, options.cluster});
  // Tells the engine that a peer that dies will come back.
  if (options.num_restarts > 0) {
    process.environment.emplace_back(kMaxAttemptVariable, std::to_string(options.num_restarts));
  }
  const auto is_set = [&](std::string_view name) {
    return Names(options.environment, name) ||
           std::find(context.inherited.begin(), context.inherited.end(), name) != context.inherited.end();
  };
  // Makes a Python program's output visible at once, and keeps it from being lost if the program is killed.
  if (!is_set(kUnbufferedVariable)) process.environment.emplace_back(kUnbufferedVariable, "1");
  if (role == tracker::Role::kWorker) {
    AddPlaceEnvironment(options, context, process);
    if (context.report_seconds > 0 && !is_set(kReportVariable))
      process.environment.emplace_back(kReportVariable, std::to_string(context.report_seconds));
    if (context.report_seconds > 0 && !options.timeline.empty())
      process.environment.emplace_back(kReportTimelineVariable, "1");
    const Threads threads = ThreadsOf(options, context.inherited);
    if (threads == Threads::kChosen) {
      process.environment.emplace_back(kThreadsVariable, std::to_string(options.worker_cores));
    } else if (threads == Threads::kShare && ClusterOf(options).core_sharing == CoreSharing::kHere) {
      process.environment.emplace_back(
          kThreadsVariable,
          std::to_string(ThreadsOfWorker(context.usable_cores - CoresOfServers(options, options.num_servers),
                                         options.num_workers)));
    }
  }
  const auto& bound = role == tracker::Role::kWorker ? context.binding.workers : context.binding.servers;
  if (role != tracker::Role::kScheduler && !bound.empty())
    process.cores = bound[static_cast<std::size_t>(task_id)];
  for (const std::string& name : context.inherited) {
    const bool of_a_job = std::find(kJobVariables.begin(), kJobVariables.end(), name) != kJobVariables.end();
    if (of_a_job && !Names(process.environment, name)) process.unset.push_back(name);
  }
  process.log_file = LogFile(options.log_dir, role, task_id);
  return process;
}

}  // namespace

std::string JobName(const Options& options) {
  return options.job_name.empty() ? NameOfCommand(options.command) : options.job_name;
}

std::string QueuedJobName(const Options& options) {
  return options.job_name.empty() ? "dmlc-" + NameOfCommand(options.command) : options.job_name;
}

void AddPlaceVariable(const PlaceVariable& variable, const std::string& value,
                      tracker::Environment& environment) {
  environment.emplace_back(variable.torch, value);
  environment.emplace_back(variable.horovod, value);
}

std::string ExportWords(const PlaceVariable& variable, const std::string& value) {
  return fmt::format("{}=\"{}\" {}=\"{}\"", variable.torch, value, variable.horovod, value);
}

std::string ProcessName(tracker::Role role, int task_id) {
  if (role == tracker::Role::kScheduler) return "scheduler";
  return fmt::format("{} {}", tracker::RoleName(role), task_id);
}

Threads ThreadsOf(const Options& options, const std::vector<std::string>& inherited) {
  const bool is_set = Names(options.environment, kThreadsVariable) ||
                      std::find(inherited.begin(), inherited.end(), kThreadsVariable) != inherited.end();
  if (is_set) return Threads::kOfUser;
  if (options.worker_cores_were_chosen) return Threads::kChosen;
  const bool shares = ClusterOf(options).core_sharing != CoreSharing::kNone;
  return shares ? Threads::kShare : Threads::kOfUser;
}

Bind BindOf(const Options& options) {
  return options.bind.value_or(kDefaultBind);
}

int CoresOfServers(const Options& options, int servers) {
  return BindOf(options) == Bind::kNone ? 0 : servers;
}

HostProcesses ProcessesToBind(const Options& options, int workers, int servers, int usable_cores,
                              std::string_view omp_num_threads) {
  for (const auto& [name, value] : options.environment) {
    if (name == kThreadsVariable) omp_num_threads = value;
  }
  HostProcesses processes{.workers = workers, .servers = servers};
  const auto [end, error] = std::from_chars(
      omp_num_threads.data(), omp_num_threads.data() + omp_num_threads.size(), processes.threads);
  if (error == std::errc{} && processes.threads > 0) return processes;  // the first of nested levels "4,2"
  processes.threads = options.worker_cores_were_chosen
                          ? options.worker_cores
                          : ThreadsOfWorker(usable_cores - CoresOfServers(options, servers), workers);
  return processes;
}

std::vector<PlannedProcess> Plan(const Options& options, const PlanContext& context) {
  CheckUserEnvironment(options);
  std::vector<PlannedProcess> plan;
  if (options.num_servers > 0) plan.push_back(PlanOne(options, context, tracker::Role::kScheduler, 0));
  for (int i = 0; i < options.num_servers; ++i) {
    plan.push_back(PlanOne(options, context, tracker::Role::kServer, i));
  }
  for (int i = 0; i < options.num_workers; ++i) {
    plan.push_back(PlanOne(options, context, tracker::Role::kWorker, i));
  }
  return plan;
}

tracker::Environment EnvironmentOfAttempt(const PlannedProcess& process, int attempt) {
  tracker::Environment environment = process.environment;
  for (auto& [name, value] : environment) {
    if (name == kAttemptVariable) value = std::to_string(attempt);
  }
  return environment;
}

tracker::Environment WithoutTask(tracker::Environment environment) {
  std::erase_if(environment, [](const auto& entry) {
    return entry.first == "DMLC_TASK_ID" || entry.first == kAttemptVariable ||
           entry.first == kRankVariable.torch || entry.first == kRankVariable.horovod;
  });
  return environment;
}

bool NamesMaster(const PlannedProcess& process) {
  return Names(process.environment, kMasterVariable);
}

std::string ShowPlan(const std::vector<PlannedProcess>& plan) {
  std::string text;
  for (const PlannedProcess& process : plan) {
    std::vector<std::string> words;
    if (!process.cores.empty()) words = {"taskset", "-c", ShowCoreList(process.cores)};
    words.emplace_back("env");
    for (const std::string& name : process.unset) words.insert(words.end(), {"-u", name});
    const bool has_dash = std::any_of(process.environment.begin(), process.environment.end(),
                                      [](const auto& entry) { return entry.first.starts_with('-'); });
    if (has_dash) words.emplace_back("--");  // else env would take the name for an option
    for (const auto& [name, value] : process.environment) words.push_back(fmt::format("{}={}", name, value));
    if (process.argv.front().find('=') != std::string::npos) {
      // env would take the command for another variable.
      words.insert(words.end(), {"sh", "-c", "exec \"$0\" \"$@\""});
    }
    words.insert(words.end(), process.argv.begin(), process.argv.end());
    text += fmt::format("# {}", ProcessName(process.role, process.task_id));
    if (!process.cores.empty()) text += fmt::format(", bound to {}", NamedCores(process.cores));
    if (!process.log_file.empty()) text += fmt::format(", output kept in {}", ShellQuote(process.log_file));
    text += '\n' + ShellCommand(words) + '\n';
  }
  return text;
}

}  // namespace warren::submit
