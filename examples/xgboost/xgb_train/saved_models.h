// The models that save_period leaves in model_dir: their names, the runs they belong to, and the rounds they
// contain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/xgboost/xgb_train/parameters.h"

namespace warren::xgb_train {

/// Returns `<folder>/NNNN.model`, the name that XGBoost's command line uses.
std::string SavedModelPath(const std::string& folder, int round);

/// Whether `name`, without a folder, is the name of a saved model.
bool IsSavedModelName(const std::string& name);

/// Returns the rounds of the saved models in `folder`, in descending order. Other files, such as temporary
/// files of a killed writer, are ignored; a missing folder has no models.
std::vector<int> SavedRounds(const std::string& folder);

/// Whether XGBoost keeps state between rounds that a model does not contain. If so, every run must continue
/// from each saved model as a resumed run does. One seed per round is not enough: the column sampler has its
/// own generator (colsample_by*); hist draws the seed of that generator in a booster's first round, before it
/// draws the rows (subsample); and gblinear shuffles the order that the previous round left
/// (feature_selector).
bool StartsAfreshWhenSaved(const Parameters& parameters);

/// Returns a description of what determines the trees of a run: the contents of the training data, the model
/// it started from, the booster parameters, XGBoost's version and, if StartsAfreshWhenSaved, save_period. A
/// run can continue from the saved models of another run with the same description. Settings that do not
/// affect the trees (num_round, eval_metric, nthread) are left out, and so is the number of workers, with
/// which the trees may differ.
std::string DescribeRun(const Parameters& parameters, uint64_t data_digest, const std::string& model_in_bytes,
                        const std::string& xgboost_version);

}  // namespace warren::xgb_train
