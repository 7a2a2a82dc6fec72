// WARREN_BOOTSTRAP=slurm: ranks find each other without a tracker and without MPI, through their launcher.
#pragma once

#include <memory>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/bootstrap.h"

namespace warren {

/// Uses the launcher's PMI-1 if PMI_FD is open (`srun --mpi=pmi2`, MPICH's mpiexec), otherwise all ranks
/// connect to rank 0 of the Slurm step (plain `srun`). Each wait is limited to settings.connect_timeout plus
/// a few seconds. Throws EngineError.
std::unique_ptr<Bootstrap> MakeSlurmBootstrap(const Settings& settings);

}  // namespace warren
