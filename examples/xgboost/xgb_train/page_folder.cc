// Folders, their locks, and the thread that waits for signals.
#include "examples/xgboost/xgb_train/page_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace warren::xgb_train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = "lock";
constexpr size_t kUniqueLetters = 6;

/// The folders of this process. Never destroyed, because the thread that waits for signals outlives main.
struct Folders {
  std::mutex mutex;
  std::set<std::string> paths;
};

Folders& Mine() {
  static auto* const folders = new Folders;
  return *folders;
}

void Remove(const std::string& folder) {
  std::error_code ignored;  // the next process tries to remove the rest
  fs::remove_all(folder, ignored);
}

/// Opens and locks the folder's lock file. Returns -1 with errno if the file does not exist, another process
/// holds its lock, or it was removed before it could be locked.
int LockOf(const std::string& folder, int flags) {
  const int file = open((fs::path(folder) / kLockName).c_str(), flags | O_RDWR | O_CLOEXEC, 0666);
  if (file < 0) return file;
  int reason = 0;
  struct stat status {};
  if (flock(file, LOCK_EX | LOCK_NB) != 0 || fstat(file, &status) != 0) {
    reason = errno;
  } else if (status.st_nlink == 0) {
    reason = ENOENT;
  } else {
    return file;
  }
  close(file);
  errno = reason;
  return -1;
}

/// Whether the name has the form "part3-of-8.xgboost.Ab3xY9".
bool IsOfAPart(const std::string& name) {
  int part = 0;
  int parts = 0;
  int end = 0;
  return std::sscanf(name.c_str(), "part%d-of-%d.xgboost.%n", &part, &parts, &end) == 2 && end > 0 &&
         name.size() == static_cast<size_t>(end) + kUniqueLetters;
}

}  // namespace

// A folder without a lock file is skipped: the process that has made it may be about to create one.
void RemovePageFoldersOfDeadProcesses(const std::string& cache) {
  const fs::path beside = fs::path(cache).has_parent_path() ? fs::path(cache).parent_path() : fs::path(".");
  const std::string begin = fs::path(cache).filename().string() + ".";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(beside, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !IsOfAPart(name.substr(begin.size()))) continue;
    const int lock = LockOf(entry.path().string(), 0);
    if (lock < 0) continue;
    Remove(entry.path().string());
    close(lock);
  }
}

PageFolder::PageFolder(const std::string& cache, int part, int parts) {
  do {
    path_ = fmt::format("{}.part{}-of-{}.xgboost.{}", cache, part, parts, std::string(kUniqueLetters, 'X'));
    if (mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error(
          fmt::format("{}: cannot make a folder for XGBoost's pages: {}", path_, std::strerror(errno)));
    }
  } while (!Lock());
  const std::lock_guard hold(Mine().mutex);
  Mine().paths.insert(path_);
}

PageFolder::~PageFolder() {
  Remove(path_);
  close(lock_);
  const std::lock_guard hold(Mine().mutex);
  Mine().paths.erase(path_);
}

// Returns false if another process has mistaken the folder for a leftover and is removing it or has removed
// it.
bool PageFolder::Lock() {
  lock_ = LockOf(path_, O_CREAT);
  if (lock_ >= 0) return true;
  const int reason = errno;
  if (reason == EWOULDBLOCK || reason == ENOENT) return false;
  Remove(path_);
  throw std::runtime_error(fmt::format("{}: cannot lock the folder: {}", path_, std::strerror(reason)));
}

void RemovePageFoldersOnSignals() {
  static sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction now {};
    // A signal that is ignored, as SIGHUP under nohup, must stay so: sigwait would return it.
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([] {
    int number = 0;
    if (sigwait(&signals, &number) != 0) return;
    {
      const std::lock_guard hold(Mine().mutex);
      for (const std::string& folder : Mine().paths) Remove(folder);
    }
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    kill(getpid(), number);
  }).detach();
}

}  // namespace warren::xgb_train
