// Data sets as the tasks see them: checked, loaded, this worker's share only. The one file to change when
// another reader takes XGBoost's place.
#pragma once

#include <cstdint>
#include <string>

#include "examples/xgboost/xgb_train/communicator.h"
#include "examples/xgboost/xgb_train/xgboost_api.h"

namespace warren::xgb_train {

struct Dataset {
  DMatrix matrix;       ///< this worker's rows
  uint64_t rows = 0;    ///< of all workers
  uint64_t digest = 0;  ///< of the contents of all workers; the same for any number of workers
};

/// Loads `uri`, which is `path[;path...][?key=value[&key=value...]][#cache]` as XGBoost takes it:
/// `format` is libsvm (the default) or another format XGBoost reads, `indexing_mode=1` says that LibSVM
/// indices count from 1, the cache prefix makes XGBoost keep the data on disk.
///
/// The files are local and regular. Each worker checks the bytes of its share, so that a job checks
/// every byte once, at the same time; a message's line number still counts from the top of the file.
/// A collective call. Throws DataError (a bad line) or std::runtime_error (missing, empty, unreadable).
Dataset LoadDataset(const std::string& uri, Communicator& job, bool silent);

}  // namespace warren::xgb_train
