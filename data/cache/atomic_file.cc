// Implements AtomicFile with POSIX calls.
#include "data/cache/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <utility>

namespace warren {
namespace {

namespace fs = std::filesystem;
using posix::Descriptor;

constexpr std::string_view kAsideSuffix = ".tmp";

[[noreturn]] void Fail(std::string_view action, const std::string& path) {
  const int error = errno;
  throw std::runtime_error(fmt::format("cannot {} {}: {}", action, path, std::strerror(error)));
}

bool IsRegularOrAbsent(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

// Returns the file that `path` links to, so that the file is replaced and the link remains; `path` itself if
// it is not a link.
std::string FollowLinks(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : fs::path(path);
  return error || resolved.empty() ? path : resolved.string();
}

fs::path FolderOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// A rename is durable only once its folder is synced. Some file systems cannot sync folders; that is not an
// error, since the rename itself is already done.
void SyncFolder(const fs::path& folder) {
  const Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) (void)fsync(fd.get());
}

/// Returns the target whose temporary file has this name, `<target>.<digits>.tmp`; empty if the name has
/// another form.
std::string TargetOfAsideName(std::string_view name) {
  if (!name.ends_with(kAsideSuffix)) return {};
  name.remove_suffix(kAsideSuffix.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == name.size()) return {};
  const bool has_pid = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dot) + 1, name.end(),
                                   [](char c) { return c >= '0' && c <= '9'; });
  return has_pid ? std::string(name.substr(0, dot)) : std::string();
}

/// Creates a temporary file next to `target`, locked while it is open; sets `name` to its name. On a file
/// system without locks, the file stays unlocked, and leftovers are not removed, since they cannot be
/// distinguished from files in use.
Descriptor CreateAside(const std::string& target, std::string& name) {
  constexpr mode_t kMode = 0666;  // the umask applies
  std::random_device random;
  while (true) {
    name = fmt::format("{}.{}{}", target, random(), kAsideSuffix);
    Descriptor fd(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (!fd && errno == EEXIST) continue;
    if (!fd) return fd;
    struct stat status {};
    // RemoveLeftovers may have removed the file between open and flock.
    if (flock(fd.get(), LOCK_EX) != 0 || fstat(fd.get(), &status) != 0 || status.st_nlink > 0) return fd;
  }
}

/// Removes the temporary file at `path` if it can be locked, which it cannot while its writer is alive.
void RemoveUnlessLocked(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd && flock(fd.get(), LOCK_EX | LOCK_NB) == 0) (void)unlink(path.c_str());
}

}  // namespace

AtomicFile::AtomicFile(const std::string& target) : target_(FollowLinks(target)) {
  if (IsRegularOrAbsent(target_)) {
    fd_ = CreateAside(target_, aside_);
  } else {
    fd_ = Descriptor(open(target_.c_str(), O_WRONLY | O_CLOEXEC));
  }
  if (!fd_) Fail("create", target_);
}

AtomicFile AtomicFile::StandardOutput() {
  AtomicFile file;
  file.target_ = "standard output";
  file.fd_ = Descriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!file.fd_) Fail("write to", file.target_);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)), aside_(std::exchange(other.aside_, {})), fd_(std::move(other.fd_)) {}

AtomicFile::~AtomicFile() {
  if (!aside_.empty()) unlink(aside_.c_str());
}

void AtomicFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail("write", target_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void AtomicFile::Commit() {
  if (!aside_.empty()) {
    if (fsync(fd_.get()) != 0) Fail("flush", aside_);
    // Rename before closing the file, since closing releases its lock.
    if (rename(aside_.c_str(), target_.c_str()) != 0) Fail("rename " + aside_ + " to", target_);
    aside_.clear();
    SyncFolder(FolderOf(target_));
  }
  if (close(fd_.release()) != 0) Fail("close", target_);
}

void WriteWholeFile(const std::string& target, std::string_view bytes) {
  AtomicFile file(target);
  file.Write(bytes);
  file.Commit();
}

void RemoveLeftovers(const std::string& target) {
  const std::string name = fs::path(FollowLinks(target)).filename().string();
  RemoveLeftoversIn(FolderOf(FollowLinks(target)).string(),
                    [&](const std::string& candidate) { return candidate == name; });
}

void RemoveLeftoversIn(const std::string& folder, const std::function<bool(const std::string&)>& is_target) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string target = TargetOfAsideName(entry.path().filename().string());
    if (!target.empty() && is_target(target)) RemoveUnlessLocked(entry.path().string());
  }
}

void RequireWritable(const std::string& target) {
  const std::string path = FollowLinks(target);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw std::runtime_error(fmt::format("cannot write {}: it is a folder, expected a file name", target));
  }
  const std::string checked = IsRegularOrAbsent(path) ? FolderOf(path).string() : path;
  if (access(checked.c_str(), W_OK) != 0) Fail("write to", checked);
}

}  // namespace warren
