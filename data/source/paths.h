// How the names of files are understood.
#pragma once

#include <cstdint>

namespace warren::data {

/// What paths may be besides files, folders and scheme://...
enum class Paths : std::uint8_t {
  kWritten,  ///< patterns (*, ?, [...]), if no file has the name, and "-" for standard input
  kExact,    ///< nothing else: whatever characters a path has, it is one name
};

}  // namespace warren::data
