// The folder in which XGBoost keeps its pages of a data set. The pages can take gigabytes and are useless
// once the process has ended, so the folder is removed at that point or, after kill -9, by the next process
// that uses the cache.
#pragma once

#include <string>

namespace warren::xgb_train {

/// A folder used by this process alone. It is removed with its contents by the destructor, and on SIGINT,
/// SIGTERM, SIGHUP and SIGQUIT if RemovePageFoldersOnSignals was called.
///
/// Not thread-safe.
class PageFolder {
 public:
  /// Makes `CACHE.partK-of-N.xgboost.XXXXXX`, where the last six characters make the name unique. Throws
  /// std::runtime_error if the folder cannot be made or locked.
  PageFolder(const std::string& cache, int part, int parts);
  ~PageFolder();
  PageFolder(const PageFolder&) = delete;
  PageFolder& operator=(const PageFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  bool Lock();

  std::string path_;
  int lock_ = -1;  ///< descriptor of the folder's lock file, which is locked while this object lives
};

/// Removes the folders of all parts of this cache that killed processes (kill -9) have left behind.
void RemovePageFoldersOfDeadProcesses(const std::string& cache);

/// Starts a thread that waits for SIGINT, SIGTERM, SIGHUP or SIGQUIT, removes the process's page folders, and
/// then ends the process with the same signal. Must be called before any other thread is started, so that all
/// threads block these signals.
void RemovePageFoldersOnSignals();

}  // namespace warren::xgb_train
