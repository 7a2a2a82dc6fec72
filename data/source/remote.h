// Files behind scheme://..., through dmlc-core's streams: hdfs://, s3:// and others, whichever the installed
// library was built with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/source/file.h"

namespace warren::data {

/// Whether a path is one of these: it has "://" in it.
bool IsRemote(std::string_view path);

/// The file, or the files of a folder by the order of their names' bytes. Throws DataError with dmlc-core's
/// words, or when this was built without it.
std::vector<std::string> ListRemote(const std::string& uri);

/// As it is stored; of compressed ones the compressed bytes. One connection, which its readers share by
/// turns. Throws as ListRemote.
std::unique_ptr<File> OpenRemote(const std::string& uri);

}  // namespace warren::data
