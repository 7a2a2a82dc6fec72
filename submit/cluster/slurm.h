// --cluster slurm: starts the processes with srun inside an allocation; otherwise submits a job with sbatch
// and watches it in the queue.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"

namespace warren::submit {

/// The launch, with srun if `in_allocation`, otherwise with sbatch.
Launch SlurmLaunch(const GangPlan& plan, bool in_allocation);

/// The state of a job, from the output of `squeue -h -j ID -t all -o '%T|%r'`; nullopt if the output does not
/// show whether the job is pending, running or over.
std::optional<JobReport> ReadSqueue(const std::string& id, std::string_view printed, int exit_code);

/// The cluster's row in the registry.
ClusterEntry SlurmEntry();

}  // namespace warren::submit
