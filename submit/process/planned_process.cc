#include "submit/process/planned_process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "submit/process/command.h"

namespace warren::submit {

void AddPlaceVariable(const PlaceVariable& variable, const std::string& value,
                      tracker::Environment& environment) {
  environment.emplace_back(variable.torch, value);
  environment.emplace_back(variable.horovod, value);
}

std::string ExportWords(const PlaceVariable& variable, const std::string& value) {
  return fmt::format("{}=\"{}\" {}=\"{}\"", variable.torch, value, variable.horovod, value);
}

bool HasVariable(const tracker::Environment& environment, std::string_view name) {
  return FindVariable(environment, name).has_value();
}

std::optional<std::string> FindVariable(const tracker::Environment& environment, std::string_view name) {
  const auto found = std::find_if(environment.rbegin(), environment.rend(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == environment.rend() ? std::nullopt : std::optional(found->second);
}

tracker::Environment WithDefaults(tracker::Environment defaults, const tracker::Environment& environment) {
  std::erase_if(defaults, [&](const auto& entry) { return HasVariable(environment, entry.first); });
  defaults.insert(defaults.end(), environment.begin(), environment.end());
  return defaults;
}

std::string ProcessName(tracker::Role role, int task_id) {
  if (role == tracker::Role::kScheduler) return "scheduler";
  return fmt::format("{} {}", tracker::RoleName(role), task_id);
}

std::string DescribeProcess(const std::string& name, std::optional<int> rank, const Started& where) {
  std::vector<std::string> known;
  if (rank) known.push_back(fmt::format("rank {}", *rank));
  if (!where.host.empty()) known.push_back(fmt::format("host {}", where.host));
  if (where.pid > 0) known.push_back(fmt::format("pid {}", where.pid));
  return known.empty() ? name : fmt::format("{} ({})", name, fmt::join(known, ", "));
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
  return HasVariable(process.environment, kMasterVariable);
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
    if (has_dash) words.emplace_back("--");  // otherwise, env would take the name for an option
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
