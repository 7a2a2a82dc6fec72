// Creates a Communicator over MPI from settings, for engine/join.cc and librabit_mpi.
#pragma once

#include <memory>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/call/communicator.h"

namespace warren {

/// Loads the MPI that fits this process (mpi_library.h) and joins its world. Calls MPI_Init if the program
/// has not; Finalize then calls MPI_Finalize. MPI assigns the ranks. TrackerPrint sends to the tracker if the
/// settings name one. Throws EngineError, for example if the launcher started several processes but MPI sees
/// only this one.
std::unique_ptr<Communicator> JoinMpi(const Settings& settings);

}  // namespace warren
