// Files that only their owner may read, because they contain tokens, commands or the output of programs.
// Depends on nothing outside posix/.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "posix/descriptor.h"

namespace warren::posix {

/// Opens or creates the file for writing, with O_CREAT and O_CLOEXEC in addition to `flags` (such as O_TRUNC
/// or O_APPEND). Whatever the umask is, the file's group and other users may neither read nor write it: an
/// existing regular file loses their permissions. Devices, pipes, and files of other owners keep their
/// permissions. Returns an empty descriptor and sets errno on failure.
inline Descriptor OpenPrivate(const char* path, int flags) {
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  Descriptor file(open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, S_IRUSR | S_IWUSR));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || (status.st_mode & kOthers) == 0)
    return file;
  constexpr mode_t kKept = S_ISUID | S_ISGID | S_ISVTX | S_IRWXU;
  if (fchmod(file.get(), status.st_mode & kKept) == 0 || errno == EPERM) return file;
  const int error = errno;
  file.reset();
  errno = error;
  return file;
}

}  // namespace warren::posix
