// The common part of the registry entries of clusters whose launcher starts all processes together (gang.h).
#pragma once

#include <functional>

#include "submit/cluster/cluster.h"
#include "submit/cluster/gang.h"

namespace warren::submit {

/// Sets the entry's `make` and `show`. `launches` returns the function that makes a job's launches; it may
/// throw std::runtime_error.
void LaunchTogether(ClusterEntry& entry, std::function<GangCluster::MakeLaunch(const Options&)> launches);

}  // namespace warren::submit
