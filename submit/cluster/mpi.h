// --cluster mpi: one mpirun of Open MPI 4 or 5, MPICH (Hydra) or Intel MPI starts all workers.
#pragma once

#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/cluster/host_file.h"
#include "submit/cluster/launch.h"
#include "tracker/host_address.h"

namespace warren::submit {

enum class MpiKind { kOpenMpi4, kOpenMpi5, kHydra, kIntel };

/// Identifies the MPI implementation of an mpirun by the output of its --version. Throws std::runtime_error
/// if the output is from any other program.
MpiKind RecogniseMpi(const std::string& program, const std::string& version_text);

/// The mpirun of the options, and the hosts of the host file if there is one.
struct MpiSetting {
  std::string program;  ///< as in the options: a name or a path
  MpiKind kind = MpiKind::kOpenMpi4;
  std::vector<Host> hosts;  ///< if empty, mpirun chooses, for example the hosts of its allocation
};

/// Finds mpirun and queries its version. Throws std::runtime_error if no usable mpirun is found or the host
/// file is invalid.
MpiSetting FindMpi(const Options& options);

/// The names of the hosts in the host file; empty without a host file. Throws std::runtime_error if the file
/// is invalid.
std::vector<std::string> MpiHostNames(const Options& options);

/// The address at which the processes reach this machine, as tracker::AddressTowards finds it for the hosts
/// of the host file. Without a host file, it is the address on the default route if the environment or
/// --mpirun-args suggest other hosts, else the loopback address.
tracker::Reached RouteToMpiHosts(const Options& options);

Launch MpiLaunch(const MpiSetting& setting, const GangPlan& plan);

/// The cluster's row in the registry.
ClusterEntry MpiEntry();

}  // namespace warren::submit
