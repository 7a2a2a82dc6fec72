// Makes boosters from settings and model files, the same way for all tasks.
#pragma once

#include <string>
#include <vector>

#include "examples/xgboost/xgb_train/communicator.h"
#include "examples/xgboost/xgb_train/parameters.h"
#include "examples/xgboost/xgb_train/xgboost_api.h"

namespace warren::xgb_train {

/// A booster with the user's parameters; it starts from `model` unless that is empty. A parameter that
/// XGBoost refuses is a ConfigError naming the place where the user set it. A collective call.
Booster MakeBooster(const Parameters& parameters, const std::string& model,
                    const std::vector<const DMatrix*>& cached);

/// The bytes of a model file, which rank 0 reads for all: a file system that shows workers different
/// files cannot split the job. Empty without a path. A collective call.
std::string ReadModelForAll(const std::string& path, Communicator& job);

/// The bytes of a model file. Throws std::runtime_error when it cannot be read, is empty or is cut off.
std::string ReadModel(const std::string& path);

}  // namespace warren::xgb_train
