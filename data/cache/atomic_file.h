// A file that readers see completely or not at all: written to a temporary file, flushed to disk, then
// renamed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "posix/descriptor.h"

namespace warren {

/// Writes a file so that its name never refers to partial contents, even if the writer is killed.
///
/// The bytes go to `<target>.<number>.tmp` in the same folder; Commit() flushes them to disk and atomically
/// renames the file to the target. Without Commit(), the target is unchanged, and the destructor removes the
/// temporary file. If the process is killed, that file remains; see RemoveLeftovers. Several writers, even in
/// different processes, may write the same target concurrently: the last one to commit wins. A target that
/// exists and is not a regular file (a device, a pipe) cannot be replaced and is written in place; a symbolic
/// link is followed.
///
/// All functions throw std::runtime_error naming the file, the action and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& target);
  /// The process's standard output with the same interface; nothing is renamed.
  static AtomicFile StandardOutput();
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void Write(std::string_view bytes);
  void Commit();

 private:
  AtomicFile() = default;
  std::string target_;
  std::string aside_;  ///< empty if the target is written in place
  posix::Descriptor fd_;
};

/// Writes a file with AtomicFile.
void WriteWholeFile(const std::string& target, std::string_view bytes);

/// Removes the temporary files of `target` left by killed writers. The files of live writers, which hold
/// locks (flock) on them, remain.
void RemoveLeftovers(const std::string& target);

/// Like RemoveLeftovers, for all targets in `folder` whose names `is_target` accepts, in one pass over the
/// folder.
void RemoveLeftoversIn(const std::string& folder, const std::function<bool(const std::string&)>& is_target);

/// Throws std::runtime_error if `target` is a folder, or if permissions do not allow creating or replacing
/// it. Call it before hours of work whose result could otherwise not be saved.
void RequireWritable(const std::string& target);

}  // namespace warren
