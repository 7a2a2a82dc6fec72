// Files that only their user may read: those that hold tokens, commands, or what programs print. Needs
// nothing else of the tree.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "posix/descriptor.h"

namespace warren::posix {

/// Opens or makes the file for writing, with O_CREAT and O_CLOEXEC beside `flags` (O_TRUNC, O_APPEND).
/// Whatever the umask, no other user may read or write it; a file of other permissions loses those. Devices,
/// pipes and files of other owners, whose permissions are theirs to change, stay as they are. None, with
/// errno, if it cannot be opened.
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
