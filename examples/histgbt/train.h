// A whole training run.
#pragma once

#include "examples/histgbt/options.h"

namespace warren::histgbt {

/// Trains and writes the model on rank 0. A collective call, to be made after rabit::Init; it calls
/// rabit::Finalize itself. With rabit's checkpoints, a restarted worker continues. Throws std::runtime_error.
void Train(const Options& options);

}  // namespace warren::histgbt
