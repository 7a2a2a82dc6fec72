// WARREN_BOOTSTRAP=mpi: MPI assigns the ranks, which find each other through MPI; the collectives then run
// over the engine's own transports.
#pragma once

#include <memory>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/bootstrap/bootstrap.h"

namespace warren {

/// Joins MPI's world as JoinMpi does (mpi/mpi_engine.h). Shutdown calls MPI_Finalize if this function
/// initialized MPI. Throws EngineError.
std::unique_ptr<Bootstrap> MakeMpiBootstrap(const Settings& settings);

}  // namespace warren
