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

/// Whether a path is remote, i.e. begins with scheme://.
bool IsRemote(std::string_view path);

struct RemoteFile {
  std::string uri;
  std::uint64_t size = 0;  ///< stored size, i.e. the compressed size of a compressed file
};

/// The files of a store. Thread-safe, as are the opened files, which may outlive it.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;

  /// Returns the file, or the files of a folder or pattern sorted by the bytes of their names. Files that are
  /// not data (names that begin with '.' or '_', files in subfolders) may be included. Throws DataError if no
  /// file is found or the files cannot be listed.
  virtual std::vector<RemoteFile> List(const std::string& uri) const = 0;

  /// Opens a listed file; compressed files are not decompressed. Its ReadAt throws DataError if the file
  /// cannot be read.
  virtual std::unique_ptr<File> Open(const std::string& uri, std::uint64_t size) const = 0;
};

/// Returns dmlc-core's files. A file has one connection, which its readers use in turn. The message of a
/// DataError is dmlc-core's, or says that this was built without dmlc-core.
std::shared_ptr<const RemoteFiles> DmlcFiles();

}  // namespace warren::data
