// From arguments and environment to a communicator: the door through which every face comes in.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "rabit_engine/core/communicator.h"
#include "rabit_engine/core/settings.h"

namespace warren {

/// Joins the job that the settings describe: a tracker's, MPI's, Slurm's, or none (a world of one).
/// Blocks until all ranks have come. Throws EngineError.
std::unique_ptr<Communicator> Join(const Settings& settings);

}  // namespace warren
