// Data sets for the tasks, read by data/; each worker has its share only.
#pragma once

#include <cstdint>
#include <string>

#include "examples/xgboost/xgb_train/communicator.h"
#include "examples/xgboost/xgb_train/xgboost_api.h"

namespace warren::xgb_train {

/// The purpose of a data set.
enum class Use { kTraining, kEvaluating, kPredicting };

struct Dataset {
  DMatrix matrix;       ///< this worker's rows
  uint64_t rows = 0;    ///< total over all workers
  uint64_t digest = 0;  ///< covers all workers' rows; independent of the number of workers
  uint64_t workers_without_rows = 0;
};

/// Loads `uri`, which is `path[;path...][?key=value[&key=value...]][#cache]` (data/uri.h). With a cache, rows
/// are kept on disk with one page at a time in memory; otherwise they are all in memory. Training data in a
/// job are always in memory, because XGBoost 1.7 and 2.0 cannot sum the histograms of several pages over
/// workers: they take the histogram index from the first page, but look it up at the last one.
///
/// A collective call: all workers agree on the number of columns. With a `verbosity` of at least 1, it
/// reports skipped bad rows, workers without rows and a cache that is not used; with 2, also stale caches.
/// Throws data::DataError (e.g. for a bad row or a missing file) or std::runtime_error (e.g. if there are no
/// rows).
Dataset LoadDataset(const std::string& uri, Use use, Communicator& job, int verbosity);

}  // namespace warren::xgb_train
