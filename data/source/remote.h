// Files whose names begin with scheme://, such as hdfs:// and s3://. Users of the library may supply
// RemoteFiles to find and read them; otherwise dmlc-core's streams are used, for the schemes that the
// installed dmlc-core supports.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/source/file.h"

namespace warren::data {

/// Whether a path begins with scheme://, including file://.
bool IsRemote(std::string_view path);

struct RemoteFile {
  std::string uri;
  std::uint64_t size = 0;  ///< stored size, i.e. the compressed size of a compressed file
};

/// The files of a store. Thread-safe, as are the opened files, which may outlive it.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;

  /// Returns the file, or the files of a folder or pattern in an order that is the same for all workers.
  /// Files that are not data (names that begin with '.' or '_', files in subfolders) may be included. Throws
  /// DataError if the files cannot be listed. If there are none, either throws or returns an empty list.
  virtual std::vector<RemoteFile> List(const std::string& uri) const = 0;

  /// Opens a listed file; compressed files are not decompressed. Its ReadAt throws DataError if the file
  /// cannot be read.
  virtual std::unique_ptr<File> Open(const std::string& uri, std::uint64_t size) const = 0;
};

/// Returns dmlc-core's files; the files of a folder are sorted by the bytes of their names. Each open file
/// has one connection, which one thread at a time can use. A DataError contains dmlc-core's message, or
/// states that this library was built without dmlc-core.
std::shared_ptr<const RemoteFiles> DmlcFiles();

}  // namespace warren::data
