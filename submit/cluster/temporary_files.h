// Writes the files that a launcher needs, and removes them afterwards.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace warren::submit {

class TemporaryFiles {
 public:
  /// Writes the files, given as names and contents, into a new directory that only this user can read:
  /// `directory`, or a temporary one if that is empty. Without files, makes the directory only if
  /// `needs_directory`, for programs that write there. Throws std::runtime_error if the directory or a file
  /// cannot be made.
  TemporaryFiles(const std::vector<std::pair<std::string, std::string>>& contents, std::string directory,
                 bool needs_directory);
  /// Removes the directory with everything in it.
  ~TemporaryFiles();
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;

  /// Returns `words`, in which each word "FILE:name" is replaced by the path of the file, and each word
  /// "FILE:" by the path of the directory.
  std::vector<std::string> Named(std::vector<std::string> words) const;

  /// The directory of the files; empty if none was made.
  const std::string& directory() const { return directory_; }

 private:
  void RemoveAll() const;

  std::string directory_;  ///< empty if none was made
};

}  // namespace warren::submit
