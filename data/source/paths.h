// The characters that are special in the user's paths.
#pragma once

#include <cstdint>

namespace warren::data {

/// The paths accepted in addition to files, folders and scheme://...
enum class Paths : std::uint8_t {
  kWritten,  ///< patterns (*, ?, [...]) if no file has that name, and "-" for standard input
  kExact,    ///< nothing else: no character of a path is special
};

}  // namespace warren::data
