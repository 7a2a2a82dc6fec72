// The three tasks of xgb-train. Each is a collective call: every worker of the job makes it with the same
// parameters. They throw ConfigError, data::DataError or std::runtime_error.
#pragma once

#include "examples/xgboost/xgb_train/communicator.h"
#include "examples/xgboost/xgb_train/parameters.h"

namespace warren::xgb_train {

/// Trains until num_round rounds are done, prints one evaluation line per round, and saves models on rank 0.
void Train(const Parameters& parameters, Communicator& job);

/// Predicts; rank 0 writes one file, with the predictions in the order of the data for any number of workers.
void Predict(const Parameters& parameters, Communicator& job);

/// Writes the trees of a model as text, on rank 0 only.
void Dump(const Parameters& parameters, Communicator& job);

}  // namespace warren::xgb_train
