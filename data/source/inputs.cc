#include "data/source/inputs.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "data/error.h"
#include "data/source/remote.h"

namespace warren::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileScheme = "file://";
constexpr std::string_view kStandardInput = "-";

bool IsDivisible(Container container) {
  return container == Container::kPlain || container == Container::kBgzf ||
         container == Container::kZstdSeekable;
}

Input LookAtRemote(const std::string& uri) {
  const Container container = Recognise(uri);
  const bool divisible = IsDivisible(container);
  const std::uint64_t size = divisible ? OpenFile(uri, container)->size() : OpenRemote(uri)->size();
  return {.path = uri, .container = container, .divisible = divisible, .size = size};
}

Input Look(const std::string& path, const struct stat& status) {
  Input input{.path = path};
  if (!S_ISREG(status.st_mode)) return input;  // a pipe or a device: read as it comes
  input.container = Recognise(path);
  input.divisible = IsDivisible(input.container);
  const bool stored_as_is = input.container == Container::kPlain || !input.divisible;
  input.size =
      stored_as_is ? static_cast<std::uint64_t>(status.st_size) : OpenFile(path, input.container)->size();
  return input;
}

void AddFolder(const std::string& folder, std::vector<Input>& inputs) {
  std::vector<std::string> paths;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      // Files that others keep beside the data: .crc, _SUCCESS.
      if (name.starts_with('.') || name.starts_with('_') || entry.is_directory()) continue;
      paths.push_back(entry.path().string());
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(SystemFailure(folder, "listing the folder", error.code().value()));
  }
  if (paths.empty())
    throw DataError(fmt::format("{}: the folder has no files; expected files of data", folder));
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) throw DataError(SystemFailure(path, "looking for it", errno));
    inputs.push_back(Look(path, status));
  }
}

void AddPath(const std::string& path, std::vector<Input>& inputs) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw DataError(SystemFailure(path, "looking for it", errno));
  if (S_ISDIR(status.st_mode)) return AddFolder(path, inputs);
  inputs.push_back(Look(path, status));
}

/// A path that is there is no pattern, whatever characters it has.
bool IsPattern(const std::string& path) {
  struct stat status {};
  return path.find_first_of("*?[") != std::string::npos && stat(path.c_str(), &status) != 0;
}

void AddPattern(const std::string& pattern, std::vector<Input>& inputs) {
  glob_t found{};
  const int result = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (result != 0 && result != GLOB_NOMATCH)
    throw DataError(fmt::format("{}: the pattern cannot be followed", pattern));
  if (paths.empty()) throw DataError(fmt::format("{}: no file has such a name", pattern));
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) AddPath(path, inputs);
}

}  // namespace

std::vector<Input> ListInputs(const std::vector<std::string>& paths) {
  std::vector<Input> inputs;
  for (std::string path : paths) {
    if (path == kStandardInput) {
      inputs.push_back({.path = path});
      continue;
    }
    if (path.starts_with(kFileScheme)) path.erase(0, kFileScheme.size());
    if (IsRemote(path)) {
      for (const std::string& file : ListRemote(path)) inputs.push_back(LookAtRemote(file));
    } else if (IsPattern(path)) {
      AddPattern(path, inputs);
    } else {
      AddPath(path, inputs);
    }
  }
  return inputs;
}

}  // namespace warren::data
