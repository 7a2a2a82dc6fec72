// Expands the user's paths into the files to read, in a fixed order.
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

/// A file or stream of a data set.
struct Input {
  std::string path;
  Container container = Container::kPlain;
  /// Whether the input can be read at any position, so that workers can share it (file.h), or only
  /// sequentially (stream.h).
  bool divisible = false;
  /// The size used to divide inputs among the parts: bytes of text if divisible, otherwise stored bytes. 0
  /// for a stream of unknown length (standard input, a pipe).
  std::uint64_t size = 0;
  /// Identifies a local file regardless of its name. For a remote file, its path; empty for standard input,
  /// pipes and devices.
  std::string identity = {};

  // For remote files only:
  std::shared_ptr<const RemoteFiles> remote_files = nullptr;  ///< opens the file; null for a local file
  std::uint64_t stored_size = 0;
  /// The open file, if the positions of its blocks or frames had to be read to find `size`: BGZF, and zstd
  /// with a seek table.
  std::shared_ptr<const File> opened = nullptr;
};

/// A number that depends on the sizes of all inputs, which decide how they are divided among the parts.
std::uint64_t DigestOf(const std::vector<Input>& inputs);

/// Open a divisible and a non-divisible input, respectively. Throw like OpenFile and OpenStream for a path.
std::shared_ptr<const File> OpenFile(const Input& input);
std::unique_ptr<Stream> OpenStream(const Input& input);

/// Each path is a file, a folder (the files in it whose names do not begin with '.' or '_', without
/// subfolders), scheme://... (file:// always; others through `remote_files`, or dmlc-core if null), or
/// another form that `paths_are` allows. Files of a local folder or pattern are sorted by the bytes of their
/// names, so that all workers agree. Throws DataError if a path leads to nothing, or if a file occurs twice
/// (if it is local, even under different names), since its rows would count twice.
///
/// Remote files are recognized by their contents, up to 16 at a time; a plain file takes one small read.
std::vector<Input> ListInputs(const std::vector<std::string>& paths,
                              std::shared_ptr<const RemoteFiles> remote_files = nullptr,
                              Paths paths_are = Paths::kWritten);

}  // namespace warren::data
