#include "data/source/inputs.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "data/error.h"
#include "posix/files.h"

namespace warren::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileScheme = "file://";
constexpr std::string_view kStandardInput = "-";

bool IsDivisible(Container container) {
  return container == Container::kPlain || container == Container::kBgzf ||
         container == Container::kZstdSeekable;
}

/// The maximum number of remote files that are examined concurrently. Most of that time is spent waiting for
/// the store.
constexpr std::size_t kRemoteLooksAtOnce = 16;

std::unique_ptr<File> OpenStored(const Input& input) {
  return input.remote_files->Open(input.path, input.stored_size);
}

void LookAtRemote(Input& input) {
  input.container = Recognise(*OpenStored(input));
  input.divisible = IsDivisible(input.container);
  input.size = input.stored_size;
  if (!input.divisible || input.container == Container::kPlain) return;
  input.opened = OpenFile(OpenStored(input), input.container);
  input.size = input.opened->size();
}

/// Examines all remote inputs concurrently. If any fail, throws the error of the first one in the list that
/// failed.
void LookAtRemotes(std::vector<Input>& inputs) {
  std::vector<Input*> remotes;
  for (Input& input : inputs) {
    if (input.remote_files) remotes.push_back(&input);
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t failed = remotes.size();
  std::exception_ptr failure;
  const auto look = [&] {
    for (std::size_t i = next++; i < remotes.size(); i = next++) {
      try {
        LookAtRemote(*remotes[i]);
      } catch (...) {
        next = remotes.size();  // later files need not be examined
        const std::lock_guard lock(mutex);
        if (i < failed) failure = std::current_exception();
        failed = std::min(failed, i);
      }
    }
  };
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < std::min(kRemoteLooksAtOnce, remotes.size())) threads.emplace_back(look);
  } catch (const std::system_error&) {
    // Continue with fewer threads.
  }
  look();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

/// Whether a file listed for `path` belongs to the data set. As in a local folder, files in subfolders do
/// not, nor files whose names begin with '.' or '_', which other programs keep next to the data.
bool IsWanted(std::string_view path, std::string_view found) {
  if (found == path) return true;
  const std::string_view name = found.substr(found.rfind('/') + 1);
  if (name.empty() || name.front() == '.' || name.front() == '_') return false;
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!found.starts_with(path) || found.size() <= path.size() || found[path.size()] != '/') return true;
  return found.find('/', path.size() + 1) == std::string_view::npos;
}

void AddRemote(const std::string& path, const std::shared_ptr<const RemoteFiles>& remote_files,
               std::vector<Input>& inputs) {
  const std::size_t before = inputs.size();
  for (RemoteFile& file : remote_files->List(path)) {
    if (!IsWanted(path, file.uri)) continue;
    Input input{.path = std::move(file.uri), .remote_files = remote_files, .stored_size = file.size};
    input.identity = input.path;
    inputs.push_back(std::move(input));
  }
  if (inputs.size() > before) return;
  throw DataError(fmt::format(
      "{}: found no data files; names beginning with '.' or '_' and subfolders do not count", path));
}

std::string SizeAndTimeOf(const struct stat& status) {
  const timespec modified = posix::ModifiedAt(status);
  return fmt::format(":{}:{}.{}", status.st_size, modified.tv_sec, modified.tv_nsec);
}

/// Symbolic and hard links lead to the same inode. Size and time are added for file systems that make up
/// inode numbers.
std::string IdentityOf(const struct stat& status) {
  return fmt::format("{}:{}{}", status.st_dev, status.st_ino, SizeAndTimeOf(status));
}

Input Look(const std::string& path, const struct stat& status) {
  // OpenStream would take "-" for standard input.
  Input input{.path = path == kStandardInput ? "./" + path : path};
  if (!S_ISREG(status.st_mode)) return input;  // a pipe or a device, which is read as a stream
  input.container = Recognise(path);
  input.divisible = IsDivisible(input.container);
  input.identity = IdentityOf(status);
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
      // Skip subfolders and the files of other programs, such as _SUCCESS and .part-0.crc.
      if (name.starts_with('.') || name.starts_with('_') || entry.is_directory()) continue;
      paths.push_back(entry.path().string());
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(SystemFailure(folder, "listing the folder", error.code().value()));
  }
  if (paths.empty()) throw DataError(fmt::format("{}: the folder has no data files", folder));
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

/// Whether a path is a pattern. The path of an existing file is never a pattern.
bool IsPattern(const std::string& path) {
  struct stat status {};
  return path.find_first_of("*?[") != std::string::npos && stat(path.c_str(), &status) != 0;
}

void AddPattern(const std::string& pattern, std::vector<Input>& inputs) {
  glob_t found{};
  // Without this function, glob silently leaves out the files of folders that it cannot read.
  const auto on_error = [](const char*, int error) { return error == ENOENT || error == ENOTDIR ? 0 : 1; };
  const int result = glob(pattern.c_str(), GLOB_NOSORT, on_error, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (result != 0 && result != GLOB_NOMATCH)
    throw DataError(fmt::format("{}: the pattern cannot be expanded: a folder cannot be read", pattern));
  if (paths.empty()) throw DataError(fmt::format("{}: no file matches the pattern", pattern));
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) AddPath(path, inputs);
}

/// Adds the files and streams of one of the user's paths.
void AddNamed(std::string path, const std::shared_ptr<const RemoteFiles>& remote_files, Paths paths_are,
              std::vector<Input>& inputs) {
  const bool is_written = paths_are == Paths::kWritten;
  if (is_written && path == kStandardInput) {
    inputs.push_back({.path = path});
    return;
  }
  if (path.starts_with(kFileScheme)) path.erase(0, kFileScheme.size());
  if (IsRemote(path)) {
    AddRemote(path, remote_files, inputs);
  } else if (is_written && IsPattern(path)) {
    AddPattern(path, inputs);
  } else {
    AddPath(path, inputs);
  }
}

/// Throws DataError if a file occurs twice. `named_by[i]` is the user's path for inputs[i].
void RequireOnce(const std::vector<Input>& inputs, const std::vector<std::string>& named_by) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].identity.empty()) continue;
    const auto [found, is_new] = places.try_emplace(inputs[i].identity, i);
    if (is_new) continue;
    const std::size_t first = found->second;
    const bool same_name =
        fs::path(inputs[i].path).lexically_normal() == fs::path(inputs[first].path).lexically_normal();
    throw DataError(fmt::format("{} is named twice{}; its rows would count twice. Name it once",
                                inputs[i].path,
                                same_name ? fmt::format(", by '{}' and by '{}'", named_by[first], named_by[i])
                                          : fmt::format(": {} is the same file", inputs[first].path)));
  }
}

}  // namespace

std::uint64_t DigestOf(const std::vector<Input>& inputs) {
  std::uint64_t digest = inputs.size() + 1;
  for (const Input& input : inputs) {
    digest = (digest ^ (input.size << 1 | (input.divisible ? 1 : 0))) * 0x9E3779B97F4A7C15;
    digest ^= digest >> 32;
  }
  return digest;
}

std::shared_ptr<const File> OpenFile(const Input& input) {
  if (input.opened) return input.opened;
  if (input.remote_files) return OpenFile(OpenStored(input), input.container);
  std::shared_ptr<const File> file = OpenFile(input.path, input.container);
  struct stat status {};
  const bool is_there = stat(input.path.c_str(), &status) == 0;
  // The inode is not compared: file systems that make up inode numbers may give a file another one.
  if (!input.identity.empty() && (!is_there || !input.identity.ends_with(SizeAndTimeOf(status)))) {
    throw DataError(fmt::format(
        "{}: was changed or replaced after the files were listed; no program may write to it while it is read",
        input.path));
  }
  return file;
}

std::unique_ptr<Stream> OpenStream(const Input& input) {
  return input.remote_files ? OpenStream(OpenStored(input)) : OpenStream(input.path);
}

std::vector<Input> ListInputs(const std::vector<std::string>& paths,
                              std::shared_ptr<const RemoteFiles> remote_files, Paths paths_are) {
  if (!remote_files) remote_files = DmlcFiles();
  std::vector<Input> inputs;
  std::vector<std::string> named_by;
  for (const std::string& path : paths) {
    AddNamed(path, remote_files, paths_are, inputs);
    named_by.resize(inputs.size(), path);
  }
  RequireOnce(inputs, named_by);
  LookAtRemotes(inputs);
  return inputs;
}

}  // namespace warren::data
