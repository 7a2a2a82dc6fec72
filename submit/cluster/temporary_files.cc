#include "submit/cluster/temporary_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "posix/private_file.h"

namespace warren::submit {
namespace {

constexpr std::string_view kFilePlaceholder = "FILE:";

}  // namespace

TemporaryFiles::TemporaryFiles(const std::vector<std::pair<std::string, std::string>>& contents,
                               std::string directory, bool needs_directory) {
  if (contents.empty() && !needs_directory) return;
  if (directory.empty()) {
    directory = (std::filesystem::temp_directory_path() / "dmlc-submit-XXXXXX").string();
    if (mkdtemp(directory.data()) == nullptr) {
      throw std::runtime_error(fmt::format("cannot create a directory like {}: {}", directory,
                                           std::generic_category().message(errno)));
    }
  } else if (mkdir(directory.c_str(), 0700) != 0) {
    throw std::runtime_error(fmt::format(
        "cannot create the directory {}: {}; the hosts of the job read files there: start dmlc-submit in a directory that it can write and they can read",
        directory, std::generic_category().message(errno)));
  }
  directory_ = directory;
  for (const auto& [name, content] : contents) {
    const std::string path = fmt::format("{}/{}", directory_, name);
    const posix::Descriptor made = posix::OpenPrivate(path.c_str(), 0);
    std::ofstream file(path, std::ios::binary);
    file << content;
    file.close();
    if (!file) {
      RemoveAll();  // the destructor of an object whose constructor throws is not called
      throw std::runtime_error(fmt::format("cannot write {}", path));
    }
  }
}

TemporaryFiles::~TemporaryFiles() {
  RemoveAll();
}

void TemporaryFiles::RemoveAll() const {
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::string> TemporaryFiles::Named(std::vector<std::string> words) const {
  for (std::string& word : words) {
    if (word == kFilePlaceholder)
      word = directory_;
    else if (word.starts_with(kFilePlaceholder))
      word = fmt::format("{}/{}", directory_, word.substr(kFilePlaceholder.size()));
  }
  return words;
}

}  // namespace warren::submit
