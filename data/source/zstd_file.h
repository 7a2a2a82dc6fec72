// zstd files with a seek table: independent frames, followed by a skippable frame that lists their compressed
// and uncompressed sizes. Format: zstd's contrib/seekable_format, "Zstandard Seekable Format", 0.1.0.
// Internal to data/; see file.h.
#pragma once

#include <memory>

#include "data/source/file.h"

namespace warren::data::internal {

/// Whether the end of a file looks like a seek table.
bool HasSeekTable(const File& compressed);

std::unique_ptr<File> OpenZstdSeekable(std::unique_ptr<File> compressed);

}  // namespace warren::data::internal
