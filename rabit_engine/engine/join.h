// From arguments and environment to a communicator: the door through which every face comes in.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "rabit_engine/base/communicator.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/engine/native_communicator.h"
#include "rabit_engine/mpi/mpi_library.h"

namespace warren {

/// Joins the job that the settings describe: a tracker's, MPI's, Slurm's, or none (a world of one).
/// Blocks until all ranks have come. Throws EngineError.
std::unique_ptr<Communicator> Join(const Settings& settings);

/// How the ranks that mpirun or srun started find each other; kNone if no launcher started this process, or
/// started it alone, or parameter servers with it. Throws Misuse if torchrun or its like
/// started several processes: they meet through PyTorch, which this library does not know.
BootstrapKind BootstrapOfLauncher(const MpiClues& clues, const wire::LookUp& look_up);

/// Whether Join goes through a tracker: then ranks can be linked again after a loss.
bool JoinsThroughTracker(const Settings& settings);
/// The same as Join, then. `rank`: which one this process is already, when it was in the job before.
/// `greeting`: see NativeCommunicator.
std::unique_ptr<NativeCommunicator> JoinThroughTracker(const Settings& settings, std::optional<int> rank = {},
                                                       const std::string& greeting = "");

/// Joins the ranks that meet by this bootstrap, whatever the settings say of how ranks meet. Blocks until all
/// have come. Throws EngineError.
std::unique_ptr<NativeCommunicator> JoinOver(std::unique_ptr<Bootstrap> bootstrap, const Settings& settings);

}  // namespace warren
