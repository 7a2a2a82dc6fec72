// Creates a communicator from settings: every API joins the job through these functions.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "rabit_engine/base/settings.h"
#include "rabit_engine/call/communicator.h"
#include "rabit_engine/engine/native_communicator.h"
#include "rabit_engine/mpi/mpi_library.h"

namespace warren {

/// Joins the job that the settings describe: through a tracker, MPI, Slurm, or none of them (a single rank).
/// Blocks until all ranks have joined. Throws EngineError.
std::unique_ptr<Communicator> Join(const Settings& settings);

/// Returns how ranks started by mpirun or srun find each other; kNone if no launcher started this process, if
/// the launcher started only this process, or if the job has parameter servers. Throws Misuse if torchrun or
/// a similar launcher, but not mpirun or srun, started several processes: such processes find each other
/// through PyTorch's rendezvous, which this library cannot use.
BootstrapKind BootstrapOfLauncher(const MpiClues& clues, const wire::LookUp& look_up);

/// Whether Join uses a tracker. Only with a tracker can ranks be linked again after a loss. Throws Misuse if
/// the settings require a tracker but do not name one.
bool JoinsThroughTracker(const Settings& settings);
/// Like Join, for settings for which JoinsThroughTracker is true. `rank`: the rank of this process if it was
/// in the job before. `greeting`: see NativeCommunicator.
std::unique_ptr<NativeCommunicator> JoinThroughTracker(const Settings& settings, std::optional<int> rank = {},
                                                       const std::string& greeting = "");

/// Joins the world of `bootstrap`; settings.bootstrap is ignored. Blocks until all ranks have joined. Throws
/// EngineError.
std::unique_ptr<NativeCommunicator> JoinOver(std::unique_ptr<Bootstrap> bootstrap, const Settings& settings);

}  // namespace warren
