// The cores of a machine, shared out among the workers on it: OpenMP would take all of them in each.
#pragma once

#include <optional>
#include <string>

namespace warren::submit {

/// Threads for each of so many workers on a machine where `cores` may be used: an equal share, at least 1.
int ThreadsOfWorker(int cores, int workers);

/// Cores that a CPU quota allows, rounded up: "150000 100000", as cgroup v2's cpu.max has it, are 2. Nothing
/// where there is no limit.
std::optional<int> CoresOfQuota(const std::string& cpu_max);

/// Cores that this process may use: its affinity mask, and the least CPU quota (cgroup v2) of its control
/// group and those above.
int UsableCores();

}  // namespace warren::submit
