// Files that exist as long as a launcher needs them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace warren::submit {

class TemporaryFiles {
 public:
  /// Writes them into a directory of their own that only this user can read: this new one, or, where none is
  /// named, a temporary one. It is made where there are files, or where others will write there. Throws
  /// std::runtime_error.
  TemporaryFiles(const std::vector<std::pair<std::string, std::string>>& contents, std::string directory,
                 bool needs_directory);
  ~TemporaryFiles();
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;

  /// The words, with the path of a file in place of "FILE:" and its name, of the directory without a name.
  std::vector<std::string> Named(std::vector<std::string> words) const;

  /// Where they are; empty: there are none.
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;  ///< empty: there are none
};

}  // namespace warren::submit
