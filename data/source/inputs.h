// From the paths that a user wrote to the files that are read, in a fixed order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/source/file.h"

namespace warren::data {

/// One file or stream of a data set.
struct Input {
  std::string path;
  Container container = Container::kPlain;
  /// Whether it can be read at any place, so that workers can share it (file.h), or only from its beginning
  /// (stream.h).
  bool divisible = false;
  /// By which it is shared out: bytes of text when it is divisible, else bytes as stored. 0 for a stream of
  /// unknown length (standard input, a pipe).
  std::uint64_t size = 0;
};

/// Each path is a file, a folder (the files in it, not in its folders; names that begin with '.' or '_' are
/// left out), a pattern (*, ?, [...]), "-" for standard input, or scheme://... where such can be opened
/// (file:// always). Files of a folder or pattern come in the order of their names' bytes, so that all
/// workers agree. Throws DataError when a path leads to nothing.
std::vector<Input> ListInputs(const std::vector<std::string>& paths);

}  // namespace warren::data
