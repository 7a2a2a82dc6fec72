// A lock on a folder, so that only one process at a time writes files there. Depends on nothing outside
// posix/.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <optional>
#include <string>

#include "posix/descriptor.h"

namespace warren::posix {

/// Locks the folder until the returned descriptor is closed or the process exits. Returns nullopt if another
/// process holds the lock, and an empty descriptor if the folder cannot be opened. File systems that cannot
/// lock folders, such as NFS, leave the folder unlocked, and other processes are not noticed.
inline std::optional<Descriptor> LockFolder(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  return folder;
}

}  // namespace warren::posix
