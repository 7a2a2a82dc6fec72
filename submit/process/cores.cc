#include "submit/process/cores.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "posix/cores.h"

namespace warren::submit {
namespace {

constexpr char kControlGroups[] = "/sys/fs/cgroup";

/// The control group of this process, relative to kControlGroups: "user.slice/session-1.scope"; usually empty
/// in a container.
std::filesystem::path OwnControlGroup() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

}  // namespace

int ThreadsOfWorker(int cores, int workers) {
  return std::max(1, cores / std::max(1, workers));
}

std::optional<int> CoresOfQuota(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  long allowed = 0;
  long period = 0;
  if (!(text >> allowed >> period) || allowed <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>((allowed + period - 1) / period);
}

int UsableCores() {
  int cores = std::max(1, static_cast<int>(posix::OwnCores().size()));
  for (std::filesystem::path group = OwnControlGroup();; group = group.parent_path()) {
    std::ifstream file(kControlGroups / group / "cpu.max");
    std::string quota;
    if (std::getline(file, quota)) cores = std::min(cores, CoresOfQuota(quota).value_or(cores));
    if (group.empty()) return cores;
  }
}

}  // namespace warren::submit
