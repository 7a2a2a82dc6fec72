#include "submit/job/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "submit/cluster/clusters.h"
#include "submit/cluster/core_choice.h"
#include "wire/job_token.h"

namespace warren::submit {
namespace {

constexpr std::string_view kMaxAttemptVariable = "DMLC_MAX_ATTEMPT";
constexpr std::string_view kUnbufferedVariable = "PYTHONUNBUFFERED";
/// The variable with the interval of the workers' reports (wire/report.h), in seconds. A value set by the
/// user takes precedence.
constexpr std::string_view kReportVariable = "WARREN_REPORT_SECONDS";
constexpr std::string_view kReportTimelineVariable = "WARREN_REPORT_TIMELINE";
/// The variables that --env must not set, because the job sets them. If dmlc-submit runs in a process of
/// another job, it inherits that job's variables. Those that this job does not set are removed, because they
/// would mislead the processes, e.g. to the other job's tracker.
constexpr std::array<std::string_view, 24> kJobVariables = {
    "DMLC_TRACKER_URI",
    "DMLC_TRACKER_PORT",
    "DMLC_NUM_WORKER",
    "DMLC_NUM_SERVER",
    "DMLC_ROLE",
    "DMLC_TASK_ID",
    kAttemptVariable,
    kMaxAttemptVariable,
    "WARREN_ELASTIC",
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

void CheckUserEnvironment(const Options& options) {
  for (const auto& [name, value] : options.environment) {
    if (std::find(kJobVariables.begin(), kJobVariables.end(), name) != kJobVariables.end()) {
      throw UsageError(
          fmt::format("--env {}: dmlc-submit sets this variable itself, for each process", name));
    }
  }
}

/// The user's variables, each with the last value given for it, followed by the job's variables.
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

/// Whether --env or the environment of dmlc-submit sets the variable.
bool IsSet(const Options& options, const PlanContext& context, std::string_view name) {
  return HasVariable(options.environment, name) ||
         std::find(context.inherited.begin(), context.inherited.end(), name) != context.inherited.end();
}

/// Adds those variables of torchrun and horovodrun that are known here; the cluster adds the others.
void AddPlaceEnvironment(const Options& options, const PlanContext& context, PlannedProcess& process) {
  tracker::Environment& environment = process.environment;
  const std::string workers = std::to_string(options.num_workers);
  AddPlaceVariable(kRankVariable, std::to_string(process.task_id), environment);
  AddPlaceVariable(kWorldSizeVariable, workers, environment);
  if (!HasVariable(options.environment, kMasterPortVariable))
    environment.emplace_back(kMasterPortVariable, std::to_string(context.master_port));
  if (!ClusterOf(options).runs_here) return;
  AddPlaceVariable(kLocalRankVariable, std::to_string(process.task_id), environment);
  AddPlaceVariable(kLocalSizeVariable, workers, environment);
  environment.emplace_back(kCrossRankVariable, "0");
  environment.emplace_back(kCrossSizeVariable, "1");
  if (!NamesMaster(process)) environment.emplace_back(kMasterVariable, kLoopback);
}

/// Adds the variables that only workers have.
void AddWorkerEnvironment(const Options& options, const PlanContext& context, PlannedProcess& process) {
  AddPlaceEnvironment(options, context, process);
  tracker::Environment& environment = process.environment;
  if (context.report_seconds > 0 && !IsSet(options, context, kReportVariable))
    environment.emplace_back(kReportVariable, std::to_string(context.report_seconds));
  if (context.report_seconds > 0 && !options.timeline.empty())
    environment.emplace_back(kReportTimelineVariable, "1");
  if (!options.worker_ports.empty()) environment.emplace_back("WARREN_WORKER_PORTS", options.worker_ports);
  if (!options.preemption_signal.empty())
    environment.emplace_back("WARREN_PREEMPTION_SIGNAL", options.preemption_signal);
  if (!options.preemption_notice.empty())
    environment.emplace_back("WARREN_PREEMPTION_NOTICE", options.preemption_notice);
  const Threads threads = ThreadsOf(options, context.inherited);
  if (threads == Threads::kChosen) {
    environment.emplace_back(kThreadsVariable, std::to_string(options.worker_cores));
  } else if (threads == Threads::kShare && ClusterOf(options).core_sharing == CoreSharing::kHere) {
    environment.emplace_back(kThreadsVariable,
                             std::to_string(ThreadsOfWorker(options, options.num_workers, options.num_servers,
                                                            context.usable_cores)));
  }
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
  // Makes the engine join again if peers die while it joins the job, because they will be restarted.
  if (options.num_restarts > 0) {
    process.environment.emplace_back(kMaxAttemptVariable, std::to_string(options.num_restarts));
  }
  // With this variable, Python programs write output immediately, so that none is lost if the program is
  // killed.
  if (!IsSet(options, context, kUnbufferedVariable))
    process.environment.emplace_back(kUnbufferedVariable, "1");
  for (const auto& [name, value] : context.trace) {
    if (!HasVariable(options.environment, name)) process.environment.emplace_back(name, value);
  }
  if (role == tracker::Role::kWorker) AddWorkerEnvironment(options, context, process);
  const auto& bound = role == tracker::Role::kWorker ? context.binding.workers : context.binding.servers;
  if (role != tracker::Role::kScheduler && !bound.empty())
    process.cores = bound[static_cast<std::size_t>(task_id)];
  for (const std::string& name : context.inherited) {
    const bool of_a_job = std::find(kJobVariables.begin(), kJobVariables.end(), name) != kJobVariables.end();
    if (of_a_job && !HasVariable(process.environment, name)) process.unset.push_back(name);
  }
  process.log_file = LogFile(options.log_dir, role, task_id);
  return process;
}

}  // namespace

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

}  // namespace warren::submit
