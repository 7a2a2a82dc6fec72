// Divides the cores of a machine among its workers. Without this, OpenMP would use all cores in each worker.
#pragma once

#include <optional>
#include <string>

namespace warren::submit {

/// Threads for each of `workers` workers on a machine with `cores` usable cores: an equal share, at least 1.
int ThreadsOfWorker(int cores, int workers);

/// The number of cores that a CPU quota allows, rounded up: 2 for "150000 100000" (the format of cgroup v2's
/// cpu.max). nullopt if there is no limit or the text is malformed.
std::optional<int> CoresOfQuota(const std::string& cpu_max);

/// The number of cores that this process may use, at least 1: the cores of its affinity mask, or fewer if a
/// CPU quota (cgroup v2) of its control group or of a group above that allows fewer.
int UsableCores();

}  // namespace warren::submit
