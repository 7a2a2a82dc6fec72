// The three things xgb-train does. Each is one collective call: every worker of the job makes it with the
// same parameters. Errors are exceptions: ConfigError, DataError, std::runtime_error.
#pragma once

#include "examples/xgboost/xgb_train/communicator.h"
#include "examples/xgboost/xgb_train/parameters.h"

namespace warren::xgb_train {

/// Trains num_round rounds, prints one evaluation line a round, saves models from rank 0.
void Train(const Parameters& parameters, Communicator& job);

/// Predicts; rank 0 writes one file with the rows in the order of the data, whatever the number of workers.
void Predict(const Parameters& parameters, Communicator& job);

/// Writes the trees of a model as text. Rank 0 does it alone.
void Dump(const Parameters& parameters, Communicator& job);

}  // namespace warren::xgb_train
