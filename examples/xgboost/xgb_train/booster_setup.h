// Makes boosters from settings and model files, in the same way for all tasks.
#pragma once

#include <string>
#include <vector>

#include "examples/xgboost/xgb_train/communicator.h"
#include "examples/xgboost/xgb_train/parameters.h"
#include "examples/xgboost/xgb_train/xgboost_api.h"

namespace warren::xgb_train {

/// Returns a booster with the user's parameters, which starts from `model` unless that is empty. If XGBoost
/// rejects a parameter, throws a ConfigError naming the place where the user set it, or std::runtime_error if
/// XGBoost's message does not reveal the parameter. A collective call.
Booster MakeBooster(const Parameters& parameters, const std::string& model,
                    const std::vector<const DMatrix*>& cached);

/// Returns the bytes of a model file; empty if `path` is empty. Rank 0 reads it for all workers, so that all
/// get the same model even if the file differs between their hosts. A collective call.
std::string ReadModelForAll(const std::string& path, Communicator& job);

/// Returns the bytes of a model file. Throws std::runtime_error if the file cannot be read, is empty, or is a
/// JSON or UBJSON model that does not end with '}'. Truncated models in the old binary format are not
/// detected.
std::string ReadModel(const std::string& path);

}  // namespace warren::xgb_train
