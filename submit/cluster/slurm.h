// --cluster slurm: starts the processes with srun inside an allocation; otherwise submits a job with sbatch
// and watches it in the queue.
#pragma once

#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"
#include "tracker/host_address.h"

namespace warren::submit {

/// Whether dmlc-submit runs inside a Slurm allocation (salloc or a batch job).
bool InSlurmAllocation();

/// The launch, with srun if `in_allocation`, otherwise with sbatch.
Launch SlurmLaunch(const GangPlan& plan, bool in_allocation);

/// The state of a job, from the output of `squeue -h -j ID -t all -o '%T|%r'`; nullopt if the output does not
/// show whether the job is pending, running or over.
std::optional<JobReport> ReadSqueue(const std::string& id, std::string_view printed, int exit_code);

/// The nodes of the allocation or, outside an allocation, of the chosen queue or, if none is chosen, of the
/// whole Slurm cluster, by the names or addresses with which Slurm reaches them.
std::vector<std::string> SlurmNodes(const Options& options);

/// The address at which the processes reach this machine: its address on the route to a node or, if no node
/// is known, on the default route.
tracker::Reached RouteToSlurmNodes(const Options& options);

/// The cluster's row in the registry.
ClusterEntry SlurmEntry();

}  // namespace warren::submit
