// --cluster mpi: one mpirun of Open MPI 4 or 5, MPICH (Hydra) or Intel MPI starts all workers, and another
// one starts all servers.
#pragma once

#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/cluster/host_file.h"
#include "submit/cluster/launch.h"

namespace warren::submit {

enum class MpiKind { kOpenMpi4, kOpenMpi5, kHydra, kIntel };

/// Identifies the MPI implementation of the mpirun called `program` by the output of its --version. Throws
/// std::runtime_error if the output is from any other program.
MpiKind RecogniseMpi(const std::string& program, const std::string& version_text);

/// The mpirun that the options name, and the hosts of the host file if there is one.
struct MpiSetting {
  std::string program;  ///< as in the options: a name or a path
  MpiKind kind = MpiKind::kOpenMpi4;
  std::vector<Host> hosts;  ///< if empty, mpirun chooses the hosts, for example those of its allocation
};

Launch MpiLaunch(const MpiSetting& setting, const GangPlan& plan);

/// The cluster's row in the registry.
ClusterEntry MpiEntry();

}  // namespace warren::submit
