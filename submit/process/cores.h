// Divides the cores of a machine among its workers. Otherwise OpenMP would use all cores in each worker.
#pragma once

#include <optional>
#include <string>

namespace warren::submit {

/// Threads for each of `workers` workers on a machine with `cores` usable cores: an equal share, at least 1.
int ThreadsOfWorker(int cores, int workers);

/// The number of cores that a CPU quota allows, rounded up: 2 for "150000 100000" (the format of cgroup v2's
/// cpu.max). nullopt if there is no limit.
std::optional<int> CoresOfQuota(const std::string& cpu_max);

/// The number of cores this process may use: the cores of its affinity mask, or fewer if the smallest CPU
/// quota (cgroup v2) of its control group and of the groups above it allows fewer.
int UsableCores();

}  // namespace warren::submit
