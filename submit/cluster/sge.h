// --cluster sge: a Grid Engine array job, submitted with qsub and watched with qstat.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"

namespace warren::submit {

Launch SgeLaunch(const GangPlan& plan);

/// The state of job `id`, from the output of `qstat`; nullopt if qstat failed.
std::optional<JobReport> ReadQstat(const std::string& id, std::string_view printed, int exit_code);

/// The cluster's row in the registry.
ClusterEntry SgeEntry();

}  // namespace warren::submit
