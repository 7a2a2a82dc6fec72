// Where XGBoost keeps its pages while a data set is on disk: gigabytes that nobody needs any more once the
// process has ended, however it ends.
#pragma once

#include <string>

namespace warren::xgb_train {

/// A folder of this process alone, removed with all that is in it by the destructor, and by SIGINT, SIGTERM
/// and SIGHUP if RemovePageFoldersOnSignals was called. What a process left that could do neither (kill -9)
/// the next one with the same `stem` removes.
///
/// Not thread safe.
class PageFolder {
 public:
  /// Makes `<stem>.XXXXXX`, with six characters that make it unique. Throws std::runtime_error.
  explicit PageFolder(const std::string& stem);
  ~PageFolder();
  PageFolder(const PageFolder&) = delete;
  PageFolder& operator=(const PageFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  bool Lock();

  std::string path_;
  int lock_ = -1;  ///< a file in it, locked as long as the process lives
};

/// These signals end the process as ever, but only after its page folders are removed. To be called before
/// any thread is started: they must all leave the signals to the one that waits for them.
void RemovePageFoldersOnSignals();

}  // namespace warren::xgb_train
