// From the paths that a user wrote to the files that are read, in a fixed order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/source/file.h"
#include "data/source/paths.h"
#include "data/source/remote.h"
#include "data/source/stream.h"

namespace warren::data {

/// One file or stream of a data set.
struct Input {
  std::string path;
  Container container = Container::kPlain;
  /// Whether it can be read at any place, so that workers can share it (file.h), or only from its beginning
  /// (stream.h).
  bool divisible = false;
  /// The measure for shares: bytes of text when it is divisible, else bytes as stored. 0 for a stream of
  /// unknown length (standard input, a pipe).
  std::uint64_t size = 0;
  /// Equal for all names of one file, different for different files; empty for streams.
  std::string identity = {};

  // Remote files only:
  std::shared_ptr<const RemoteFiles> remote_files = nullptr;  ///< opens it; null: the file is local
  std::uint64_t stored_size = 0;
  /// What was opened to know `size`, where that took more than a few bytes: BGZF and zstd with a seek table.
  std::shared_ptr<const File> opened = nullptr;
};

/// One that is divisible, and one that is not. Throw as OpenFile and OpenStream of the path.
std::shared_ptr<const File> OpenFile(const Input& input);
std::unique_ptr<Stream> OpenStream(const Input& input);

/// Each path is a file, a folder (the files in it, not in its folders; names that begin with '.' or '_' are
/// left out), scheme://... (file:// always; others as `remote_files` has them, null: dmlc-core), or what
/// `paths_are` says. Files of a folder or pattern come in the order of their names' bytes, so that all
/// workers agree. Throws DataError when a path leads to nothing, and for a file that is there twice, by
/// whatever names: its rows would count twice.
///
/// Remote files are told apart by their first bytes: one small read for each, up to 16 at a time.
std::vector<Input> ListInputs(const std::vector<std::string>& paths,
                              std::shared_ptr<const RemoteFiles> remote_files = nullptr,
                              Paths paths_are = Paths::kWritten);

}  // namespace warren::data
