// A file that readers see either whole or not at all: written aside, flushed to disk, then renamed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "posix/descriptor.h"

namespace warren {

/// Writes a file so that its name never stands for half of its contents, whatever kills the writer.
///
/// The bytes go to `<target>.<number>.tmp` in the same folder; Commit() flushes them to disk and renames
/// them over the target in one step. Without Commit() the target stays as it was and the aside file is
/// removed (after a kill -9 it stays; see RemoveLeftovers). Several may write the same target at once, from
/// any process: the last one to commit remains. A target that exists and is not a regular file (a device, a
/// pipe) cannot be replaced and is written in place; a symbolic link is followed.
///
/// Every function throws std::runtime_error naming the file, the action and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& target);
  /// The process's standard output behind the same interface; nothing is renamed.
  static AtomicFile StandardOutput();
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void Write(std::string_view bytes);
  void Commit();

 private:
  AtomicFile() = default;
  std::string target_;
  std::string aside_;  ///< empty when the target is written in place
  posix::Descriptor fd_;
};

/// AtomicFile in one call.
void WriteWholeFile(const std::string& target, std::string_view bytes);

/// Removes aside files of `target` that killed writers left behind. Those of living writers stay: they hold
/// their files' locks (flock).
void RemoveLeftovers(const std::string& target);

/// The same for all targets in `folder` whose name `is_target` accepts, in one pass over the folder.
void RemoveLeftoversIn(const std::string& folder, const std::function<bool(const std::string&)>& is_target);

/// Throws when `target` could not be created or replaced: better before hours of work than after.
void RequireWritable(const std::string& target);

}  // namespace warren
