#include "submit/cluster/temporary_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace warren::submit {
namespace {

constexpr std::string_view kPlaceholder = "FILE:";

}  // namespace

TemporaryFiles::TemporaryFiles(const std::vector<std::pair<std::string, std::string>>& contents) {
  if (contents.empty()) return;
  std::string path = (std::filesystem::temp_directory_path() / "dmlc-submit-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    throw std::runtime_error(
        fmt::format("cannot make a directory like {}: {}", path, std::generic_category().message(errno)));
  }
  directory_ = path;
  for (const auto& [name, content] : contents) {
    std::ofstream file(fmt::format("{}/{}", directory_, name), std::ios::binary);
    file << content;
    file.close();
    if (!file) throw std::runtime_error(fmt::format("cannot write {}/{}", directory_, name));
  }
}

TemporaryFiles::~TemporaryFiles() {
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::string> TemporaryFiles::Named(std::vector<std::string> words) const {
  for (std::string& word : words) {
    if (word.starts_with(kPlaceholder))
      word = fmt::format("{}/{}", directory_, word.substr(kPlaceholder.size()));
  }
  return words;
}

}  // namespace warren::submit
