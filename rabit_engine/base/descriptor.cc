// Registers all descriptors owned by CloseOnForkDescriptors, so that a forked process can close its copies.
#include "rabit_engine/base/descriptor.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace warren {
namespace {

std::atomic<std::uint64_t> num_forks = 0;

struct Owned {
  std::mutex mutex;
  std::vector<int> descriptors;

  bool Erase(int fd) {
    const auto place = std::find(descriptors.begin(), descriptors.end(), fd);
    if (place == descriptors.end()) return false;
    *place = descriptors.back();
    descriptors.pop_back();
    return true;
  }
};

// Never destroyed, because statics of the program may own descriptors. The fork handlers make sure that the
// mutex is free in the child.
Owned& AllOwned() {
  static Owned& owned = *[] {
    pthread_atfork([] { AllOwned().mutex.lock(); }, [] { AllOwned().mutex.unlock(); },
                   [] {
                     for (const int fd : AllOwned().descriptors) ::close(fd);
                     AllOwned().descriptors.clear();
                     num_forks.fetch_add(1, std::memory_order_relaxed);
                     AllOwned().mutex.unlock();
                   });
    return new Owned;
  }();
  return owned;
}

}  // namespace

std::uint64_t NumForks() {
  AllOwned();  // registers the fork handlers, which count the forks
  return num_forks.load(std::memory_order_relaxed);
}

void CloseOnForkDescriptor::Own(int fd) {
  if (fd < 0) return;
  Owned& owned = AllOwned();
  const std::lock_guard lock(owned.mutex);
  owned.descriptors.push_back(fd);
}

int CloseOnForkDescriptor::Release() {
  if (fd_ >= 0) {
    Owned& owned = AllOwned();
    const std::lock_guard lock(owned.mutex);
    owned.Erase(fd_);
  }
  return std::exchange(fd_, -1);
}

void CloseOnForkDescriptor::Close() {
  if (fd_ < 0) return;
  Owned& owned = AllOwned();
  const std::lock_guard lock(owned.mutex);
  const int fd = std::exchange(fd_, -1);
  if (num_forks_ != NumForks()) return;  // its number may belong to another object in this process
  if (owned.Erase(fd)) ::close(fd);
}

}  // namespace warren
