// --cluster mpi: one mpirun starts all workers, of Open MPI 4 or 5, MPICH (Hydra) or Intel MPI.
#pragma once

#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/cluster/host_file.h"
#include "submit/cluster/launch.h"
#include "tracker/host_address.h"

namespace warren::submit {

enum class MpiKind { kOpenMpi4, kOpenMpi5, kHydra, kIntel };

/// Whose mpirun it is, by what its --version prints. Throws std::runtime_error when it is none of these.
MpiKind RecogniseMpi(const std::string& program, const std::string& version_text);

/// The mpirun of the options and the hosts of the host file, if there is one.
struct MpiSetting {
  std::string program;  ///< as written, or its full path
  MpiKind kind = MpiKind::kOpenMpi4;
  std::vector<Host> hosts;  ///< empty: mpirun decides, by its allocation for one
};

/// Finds and asks mpirun. Throws std::runtime_error.
MpiSetting FindMpi(const Options& options);

/// The hosts of the host file; none without one.
std::vector<std::string> MpiHostNames(const Options& options);

/// Where its processes reach this machine: at the address of the route to the first host; where no hosts are
/// named and nothing looks like an allocation of several, only from this machine.
tracker::Reached RouteToMpiHosts(const Options& options);

Launch MpiLaunch(const MpiSetting& setting, const GangPlan& plan);

/// Its row in the registry of clusters.
ClusterEntry MpiEntry();

}  // namespace warren::submit
