// Files behind scheme://...: hdfs://, s3:// and others. Who uses the library may say how they are found and
// read (RemoteFiles); else dmlc-core's streams do it, for whichever the installed library was built with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/source/file.h"

namespace warren::data {

/// Whether a path is one of these: it begins with scheme://.
bool IsRemote(std::string_view path);

struct RemoteFile {
  std::string uri;
  std::uint64_t size = 0;  ///< as it is stored: of a compressed one the compressed bytes
};

/// A store's files. Thread safe, and so are the files; they may outlive it.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;

  /// The file, or the files of a folder or pattern in the order of their names' bytes. Those that are no data
  /// (names that begin with '.' or '_', folders of a folder) may be among them. Throws DataError when there
  /// are none or they cannot be listed.
  virtual std::vector<RemoteFile> List(const std::string& uri) const = 0;

  /// One that List gave, as it is stored. Its ReadAt throws DataError where the file cannot be read.
  virtual std::unique_ptr<File> Open(const std::string& uri, std::uint64_t size) const = 0;
};

/// dmlc-core's. A file has one connection, which its readers share by turns. DataErrors have dmlc-core's
/// words, or say that this was built without it.
std::shared_ptr<const RemoteFiles> DmlcFiles();

}  // namespace warren::data
