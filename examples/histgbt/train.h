// A whole training run.
#pragma once

#include "examples/histgbt/options.h"

namespace warren::histgbt {

/// After rabit::Init, and calls rabit::Finalize; a collective call. Rank 0 writes the model. Checkpoints are
/// rabit's: a worker that is started again carries on. Throws std::runtime_error.
void Train(const Options& options);

}  // namespace warren::histgbt
