// What files are asked that systems name differently, or do not have. WARREN_PORTABLE: as on systems other
// than Linux. Needs nothing else of the tree.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>

namespace warren::posix {

#ifdef __APPLE__
inline timespec ModifiedAt(const struct stat& status) {
  return status.st_mtimespec;
}
inline timespec ChangedAt(const struct stat& status) {
  return status.st_ctimespec;
}
#else
/// When its bytes were written last.
inline timespec ModifiedAt(const struct stat& status) {
  return status.st_mtim;
}
/// When anything of it was changed last.
inline timespec ChangedAt(const struct stat& status) {
  return status.st_ctim;
}
#endif

#if defined(__linux__) && !defined(WARREN_PORTABLE)

/// Only advice.
inline void WillReadInOrder(int fd) {
  static_cast<void>(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
}

/// Reads whole pages of a mapping now. False with errno when that fails; where the kernel cannot do so, they
/// come as they are used.
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
