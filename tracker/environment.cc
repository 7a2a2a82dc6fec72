#include "tracker/environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

namespace warren::tracker {

std::string RoleName(Role role) {
  switch (role) {
    case Role::kScheduler:
      return "scheduler";
    case Role::kServer:
      return "server";
    case Role::kWorker:
      break;
  }
  return "worker";
}

Environment JobEnvironment(const JobAddress& address) {
  Environment environment = {{"DMLC_NUM_WORKER", std::to_string(address.num_workers)},
                             {"DMLC_NUM_SERVER", std::to_string(address.num_servers)}};
  if (!address.tracker_host.empty()) {
    environment.emplace_back("DMLC_TRACKER_URI", address.tracker_host);
    environment.emplace_back("DMLC_TRACKER_PORT", std::to_string(address.tracker_port));
  }
  if (!address.token.empty()) environment.emplace_back(wire::kTokenVariable, address.token);
  // Both names are set, since a worker may use a librabit that knows only the old one.
  for (const char* name : {"WARREN_TLS", "RABIT_TLS"}) {
    if (address.tls) environment.emplace_back(name, "1");
  }
  if (address.min_workers) {
    environment.emplace_back(
        "WARREN_ELASTIC", std::to_string(*address.min_workers) + ":" + std::to_string(address.num_workers));
  }
  if (!address.ps_root_host.empty()) {
    environment.emplace_back("DMLC_PS_ROOT_URI", address.ps_root_host);
    environment.emplace_back("DMLC_PS_ROOT_PORT", std::to_string(address.ps_root_port));
  }
  return environment;
}

Environment TaskEnvironment(const JobAddress& address, const TaskIdentity& task) {
  Environment environment = JobEnvironment(address);
  environment.emplace_back("DMLC_ROLE", RoleName(task.role));
  environment.emplace_back("DMLC_TASK_ID", std::to_string(task.task_id));
  environment.emplace_back("DMLC_NUM_ATTEMPT", std::to_string(task.num_attempt));
  environment.emplace_back("DMLC_JOB_CLUSTER", task.cluster);
  return environment;
}

std::optional<wire::JobToken> TokenFromEnvironment() {
  const char* variable = std::getenv(std::string(wire::kTokenVariable).c_str());
  if (variable == nullptr || *variable == '\0') return std::nullopt;
  try {
    return wire::JobToken::Parse(variable);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{} in the environment: {}", wire::kTokenVariable, error.what()));
  }
}

}  // namespace warren::tracker
