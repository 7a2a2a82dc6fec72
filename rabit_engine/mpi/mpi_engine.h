// The door to MPI for engine/join.cc and for librabit_mpi: from settings to a Communicator over MPI.
#pragma once

#include <memory>

#include "rabit_engine/base/communicator.h"
#include "rabit_engine/base/settings.h"

namespace warren {

/// Loads the MPI that fits this process (mpi_library.h) and joins its world; calls MPI_Init when the program
/// has not, and then Finalize calls MPI_Finalize. Ranks are MPI's. TrackerPrint goes to the tracker when the
/// settings name one. Throws EngineError, also when the launcher started more processes than MPI sees.
std::unique_ptr<Communicator> JoinMpi(const Settings& settings);

}  // namespace warren
