// File functions that some or all systems lack, or whose names differ between systems. Define WARREN_PORTABLE
// to get the code for systems other than Linux. Depends on nothing else in the tree.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace warren::posix {

/// Writes all bytes to a descriptor that blocks. Returns false and sets errno on failure.
inline bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

#ifdef __APPLE__
inline timespec ModifiedAt(const struct stat& status) {
  return status.st_mtimespec;
}
inline timespec ChangedAt(const struct stat& status) {
  return status.st_ctimespec;
}
#else
/// The time of the last change of the contents.
inline timespec ModifiedAt(const struct stat& status) {
  return status.st_mtim;
}
/// The time of the last change of the contents or the metadata.
inline timespec ChangedAt(const struct stat& status) {
  return status.st_ctim;
}
#endif

#if defined(__linux__) && !defined(WARREN_PORTABLE)

/// Advises the kernel that the file will be read sequentially.
inline void WillReadInOrder(int fd) {
  static_cast<void>(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
}

/// Reads whole pages of a mapping now. Returns false and sets errno on failure. If the kernel does not
/// support this, returns true, and the pages are read on first use.
inline bool ReadNow(void* pages, std::size_t bytes) {
  return madvise(pages, bytes, MADV_POPULATE_READ) == 0 || errno == EINVAL;
}

#else

inline void WillReadInOrder(int /*fd*/) {}

inline bool ReadNow(void* /*pages*/, std::size_t /*bytes*/) {
  return true;
}

#endif

}  // namespace warren::posix
