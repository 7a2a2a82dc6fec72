// The models that save_period leaves in model_dir: their names, which run they belong to, and which one to
// resume from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/xgboost/xgb_train/parameters.h"

namespace warren::xgb_train {

/// `<folder>/NNNN.model`, the name XGBoost's command line uses.
std::string SavedModelPath(const std::string& folder, int round);

/// Whether a file of this name, without its folder, is a saved model.
bool IsSavedModelName(const std::string& name);

/// Rounds of the saved models in `folder`, newest first. Other files, aside files of a killed writer
/// among them, do not count; a folder that is not there holds none.
std::vector<int> SavedRounds(const std::string& folder);

/// Whether XGBoost carries more from round to round than a model holds, so that every run has to go on from
/// the saved model as a resumed one does. A seed a round is not enough: the sampler of columns has a
/// generator of its own (colsample_by*), hist draws that one's seed in the first round of a booster, before
/// the rows (subsample), and gblinear shuffles the order that it had shuffled before (feature_selector).
bool StartsAfreshWhenSaved(const Parameters& parameters);

/// What decides the trees of a run, as text: contents of the data, the model it started from, booster
/// parameters, XGBoost's version. Two runs of one description produce the same saved models, so one may
/// carry on from the other's. What decides only length or display (num_round, eval_metric, nthread, the
/// number of workers) is not part of it.
std::string DescribeRun(const Parameters& parameters, uint64_t data_digest, const std::string& model_in_bytes,
                        const std::string& xgboost_version);

}  // namespace warren::xgb_train
