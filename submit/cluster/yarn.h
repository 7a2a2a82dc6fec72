// --cluster yarn: Hadoop's own distributed shell runs the processes as the containers of one application.
#pragma once

#include <string>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"

namespace warren::submit {

/// The jar of the distributed shell, in --yarn-app-dir or below $HADOOP_HOME. Throws std::runtime_error if
/// there is none.
std::string FindDistributedShell(const Options& options);

/// `jar`: from FindDistributedShell. Throws UsageError like PlanShipment, and std::runtime_error if the path
/// of a file to ship contains a comma or a blank.
Launch YarnLaunch(const GangPlan& plan, const std::string& jar);

/// The cluster's row in the registry.
ClusterEntry YarnEntry();

}  // namespace warren::submit
