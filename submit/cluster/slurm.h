// --cluster slurm: srun inside an allocation; outside one a job is put into the queue by sbatch, and watched
// there.
#pragma once

#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"
#include "tracker/host_address.h"

namespace warren::submit {

/// True inside an allocation of Slurm (salloc, or a batch job).
bool InSlurmAllocation();

/// With srun or with sbatch.
Launch SlurmLaunch(const GangPlan& plan, bool in_allocation);

/// What `squeue -h -t all -o '%T|%r'` says of a job; nothing when it does not know just now.
std::optional<JobReport> ReadSqueue(const std::string& id, std::string_view printed, int exit_code);

/// The nodes of the allocation, of the queue, or of Slurm, by the names or addresses it knows them by.
std::vector<std::string> SlurmNodes(const Options& options);

/// Where its processes reach this machine: at the address of the route to the first node.
tracker::Reached RouteToSlurmNodes(const Options& options);

/// Its row in the registry of clusters.
ClusterEntry SlurmEntry();

}  // namespace warren::submit
