// How many cores this process may use, limited by its affinity mask and by the CPU quotas of its control
// groups (cgroup v2). Depends on nothing outside posix/.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "posix/cores.h"

namespace warren::posix {

/// The number of cores that a CPU quota allows, rounded up: 2 for "150000 100000", the format of cgroup v2's
/// cpu.max (microseconds of CPU time allowed in each period, and the length of the period). nullopt if there
/// is no limit.
inline std::optional<int> CoresOfQuota(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  long allowed = 0;
  long period = 0;
  if (!(text >> allowed >> period) || allowed <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>((allowed + period - 1) / period);
}

/// The smallest number of cores that the quotas of this process's control group and of the groups above it
/// allow; nullopt if there is no limit. `root`: "/", or a folder with another system's files.
inline std::optional<int> CoresOfQuotas(const std::filesystem::path& root = "/") {
  // The beginning of the line for cgroup v2. The line is, for example, "0::/user.slice/session-1.scope", and
  // usually "0::/" in a container.
  constexpr std::string_view kOwnGroup = "0::/";
  std::filesystem::path group;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with(kOwnGroup)) group = line.substr(kOwnGroup.size());
  }
  std::optional<int> least;
  for (;; group = group.parent_path()) {
    std::ifstream file(root / "sys/fs/cgroup" / group / "cpu.max");
    std::string quota;
    if (std::getline(file, quota)) {
      const std::optional<int> cores = CoresOfQuota(quota);
      if (cores) least = std::min(*cores, least.value_or(*cores));
    }
    if (group.empty()) return least;
  }
}

/// The number of cores that this process may use, at least 1.
inline int UsableCores() {
  const int cores = std::max(1, static_cast<int>(OwnCores().size()));
  return std::min(cores, CoresOfQuotas().value_or(cores));
}

}  // namespace warren::posix
