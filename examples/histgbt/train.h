// A whole training run.
#pragma once

#include "examples/histgbt/options.h"

namespace warren::histgbt {

/// Trains and writes the model on rank 0. Must be called after rabit::Init, and calls rabit::Finalize; a
/// collective call. With rabit's checkpoints, a restarted worker continues. Throws std::runtime_error.
void Train(const Options& options);

}  // namespace warren::histgbt
