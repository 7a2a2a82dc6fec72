// --cluster sge: an array job of Grid Engine, put into its queue by qsub and watched by qstat.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"
#include "tracker/host_address.h"

namespace warren::submit {

Launch SgeLaunch(const GangPlan& plan);

/// What `qstat` says of the tasks of job `id`.
std::optional<JobReport> ReadQstat(const std::string& id, std::string_view printed, int exit_code);

/// Where its processes reach this machine: at the address of the route to the first execution host.
tracker::Reached RouteToSgeHosts();

/// Its row in the registry of clusters.
ClusterEntry SgeEntry();

}  // namespace warren::submit
