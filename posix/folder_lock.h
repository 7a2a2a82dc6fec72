// A folder that one process at a time writes its files to. Needs nothing else of the tree.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <optional>
#include <string>

#include "posix/descriptor.h"

namespace warren::posix {

/// Locks the folder until the descriptor is closed, by the end of the process at the latest. nullopt: another
/// process has it. Where the file system has no locks for folders, as NFS, the folder is not locked, and
/// other processes are not noticed.
inline std::optional<Descriptor> LockFolder(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  return folder;
}

}  // namespace warren::posix
