// --cluster yarn: Hadoop's own distributed shell runs the processes as the containers of one application.
#pragma once

#include <string>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"

namespace warren::submit {

/// The jar of the distributed shell below $HADOOP_HOME, or --yarn-app-dir. Throws std::runtime_error.
std::string FindDistributedShell(const Options& options);

/// `jar`: FindDistributedShell's. Throws std::runtime_error for files that cannot be shipped so.
Launch YarnLaunch(const GangPlan& plan, const std::string& jar);

/// Its row in the registry of clusters.
ClusterEntry YarnEntry();

}  // namespace warren::submit
