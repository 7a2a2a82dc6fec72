// Runs processes that one launcher starts together: mpirun, srun, or the queue of a cluster. A Launch
// (launch.h) contains everything that differs between launchers. Each process is wrapped in an agent
// (scripts/gang.sh), which connects to dmlc-submit (agent_server.h) and starts, watches and stops the process
// on command. A failed process can thus be restarted in its slot, and all processes end with the job. The
// controller (gang_controller.h) makes the decisions; this file runs the launchers, commands and timers.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "submit/cluster/cluster.h"
#include "submit/cluster/launch.h"
#include "submit/options/options.h"

namespace warren::submit {

using MakeLaunch = std::function<Launch(const GangPlan&)>;

/// Sets the `make` and `show` of a cluster whose launcher starts all processes together. `launches` returns
/// the function that makes a job's launches; it may throw std::runtime_error.
void LaunchTogether(ClusterEntry& entry, std::function<MakeLaunch(const Options&)> launches);

/// The first and the last port that the agents' listener tries. --port itself is left to the tracker or the
/// scheduler, if possible; unless --port-end is given, the next port is always in the range.
std::pair<std::uint16_t, std::uint16_t> PortsOfAgents(const Options& options);

}  // namespace warren::submit
