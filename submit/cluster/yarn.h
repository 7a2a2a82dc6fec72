// --cluster yarn: Hadoop's own distributed shell runs the processes as the containers of one application.
#pragma once

#include <string>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"

namespace warren::submit {

/// The path of the distributed shell's jar, in --yarn-app-dir or, by default, in
/// $HADOOP_HOME/share/hadoop/yarn. Throws std::runtime_error if there is none.
std::string FindDistributedShell(const Options& options);

/// `jar`: from FindDistributedShell. Throws UsageError like PlanShipment, and std::runtime_error if the path
/// of a file to ship contains a comma, a space or a tab.
Launch YarnLaunch(const GangPlan& plan, const std::string& jar);

/// The cluster's row in the registry.
ClusterEntry YarnEntry();

}  // namespace warren::submit
