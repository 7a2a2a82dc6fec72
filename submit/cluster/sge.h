// --cluster sge: a Grid Engine array job, submitted with qsub and watched with qstat.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"
#include "tracker/host_address.h"

namespace warren::submit {

Launch SgeLaunch(const GangPlan& plan);

/// The state of job `id`, from the output of `qstat`; nullopt if qstat failed.
std::optional<JobReport> ReadQstat(const std::string& id, std::string_view printed, int exit_code);

/// The address at which the processes reach this machine: its address on the route to an execution host or,
/// if no such host is known, on the default route.
tracker::Reached RouteToSgeHosts();

/// The cluster's row in the registry.
ClusterEntry SgeEntry();

}  // namespace warren::submit
