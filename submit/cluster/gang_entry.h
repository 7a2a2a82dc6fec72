// What the entries of clusters have in common whose launcher starts all processes at once (gang.h).
#pragma once

#include <functional>

#include "submit/cluster/cluster.h"
#include "submit/cluster/gang.h"

namespace warren::submit {

/// Fills in how the cluster is made and shown. `launches` finds the launcher of a job; it may throw
/// std::runtime_error.
void LaunchTogether(ClusterEntry& entry, std::function<GangCluster::MakeLaunch(const Options&)> launches);

}  // namespace warren::submit
