// Data sets as the tasks see them: read by data/, this worker's share only.
#pragma once

#include <cstdint>
#include <string>

#include "examples/xgboost/xgb_train/communicator.h"
#include "examples/xgboost/xgb_train/xgboost_api.h"

namespace warren::xgb_train {

/// What a data set is for.
enum class Use { kTraining, kPredicting };

struct Dataset {
  DMatrix matrix;       ///< this worker's rows
  uint64_t rows = 0;    ///< of all workers
  uint64_t digest = 0;  ///< of the contents of all workers; the same for any number of workers
  uint64_t workers_without_rows = 0;
};

/// Loads `uri`, which is `path[;path...][?key=value[&key=value...]][#cache]` (data/uri.h). With a cache the
/// rows are kept on disk, in memory is a page of them at a time; else they are all in memory. Those to train
/// on in a job always are: XGBoost 1.7 and 2.0 take the index of a histogram from their first page only, and
/// look it up at the last, where workers add up.
///
/// A collective call: all workers agree on the number of columns. `verbosity`: from 1 on bad rows that
/// were skipped, workers without rows and a cache that is not used are told of, from 2 on stale caches.
/// Throws data::DataError (a bad row, a missing file) or std::runtime_error (no rows at all).
Dataset LoadDataset(const std::string& uri, Use use, Communicator& job, int verbosity);

}  // namespace warren::xgb_train
