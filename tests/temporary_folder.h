// New folders for tests, removed after the test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warren {

/// A folder that all users can read, for tests that read as a user without rights.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "warren_test.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder for the test";
    path_ = name;
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t Files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }
  /// Writes a file, replacing an existing one; returns its path.
  std::string Write(const std::string& name, std::string_view text) const {
    std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    // The file is truncated after writing, not before: some file systems flush a file to disk if it was
    // emptied before it was written, which is slow.
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    bool is_written = fd >= 0;
    for (std::string_view left = text; is_written && !left.empty();) {
      const ssize_t written = write(fd, left.data(), left.size());
      is_written = written > 0;
      if (is_written) left.remove_prefix(static_cast<std::size_t>(written));
    }
    if (std::filesystem::is_regular_file(path))
      is_written = is_written && ftruncate(fd, static_cast<off_t>(text.size())) == 0;
    close(fd);
    if (!is_written) throw std::runtime_error("cannot write " + path);
    return path;
  }

 private:
  std::filesystem::path path_;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A temporary folder that is the working directory while the object exists.
class TemporaryWorkingFolder {
 public:
  TemporaryWorkingFolder() { std::filesystem::current_path(folder_.path()); }
  ~TemporaryWorkingFolder() { std::filesystem::current_path(before_); }
  TemporaryWorkingFolder(const TemporaryWorkingFolder&) = delete;
  TemporaryWorkingFolder& operator=(const TemporaryWorkingFolder&) = delete;

 private:
  const TemporaryFolder folder_;
  const std::filesystem::path before_ = std::filesystem::current_path();
};

}  // namespace warren
