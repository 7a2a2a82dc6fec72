// Creates a Communicator over MPI from settings.
#pragma once

#include <memory>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/call/communicator.h"

namespace warren {

/// Loads the plugin for the MPI of this process (mpi_library.h) and joins MPI's world. Initializes MPI if the
/// program has not; Finalize then calls MPI_Finalize. MPI assigns the ranks. TrackerPrint sends to the
/// tracker if the settings name one. Throws EngineError, for example if the launcher started several
/// processes but MPI's world has only this one.
std::unique_ptr<Communicator> JoinMpi(const Settings& settings);

}  // namespace warren
