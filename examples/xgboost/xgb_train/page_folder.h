// Where XGBoost keeps its pages while a data set is on disk: gigabytes that nobody needs any more once the
// process has ended, however it ends.
#pragma once

#include <string>

namespace warren::xgb_train {

/// A folder of this process alone, removed with all that is in it by the destructor, and by SIGINT, SIGTERM,
/// SIGHUP and SIGQUIT if RemovePageFoldersOnSignals was called.
///
/// Not thread safe.
class PageFolder {
 public:
  /// Makes `CACHE.partK-of-N.xgboost.XXXXXX`, with six characters that make it unique. Throws
  /// std::runtime_error.
  PageFolder(const std::string& cache, int part, int parts);
  ~PageFolder();
  PageFolder(const PageFolder&) = delete;
  PageFolder& operator=(const PageFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  bool Lock();

  std::string path_;
  int lock_ = -1;  ///< a file in it, locked as long as the process lives
};

/// Removes the folders of all parts of this cache whose processes could not do so (kill -9).
void RemovePageFoldersOfDeadProcesses(const std::string& cache);

/// These signals end the process as ever, but only after its page folders are removed. To be called before
/// any thread is started: they must all leave the signals to the one that waits for them.
void RemovePageFoldersOnSignals();

}  // namespace warren::xgb_train
