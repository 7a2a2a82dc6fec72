// zstd files with a seek table: independent frames, then a skippable frame that lists how long each is,
// compressed and not. zstd's contrib/seekable_format, "Zstandard Seekable Format", 0.1.0. Inside of data/
// only; see file.h.
#pragma once

#include <memory>

#include "data/source/file.h"

namespace warren::data::internal {

/// Whether a file ends with what looks like a seek table.
bool HasSeekTable(const File& compressed);

std::unique_ptr<File> OpenZstdSeekable(std::unique_ptr<File> compressed);

}  // namespace warren::data::internal
