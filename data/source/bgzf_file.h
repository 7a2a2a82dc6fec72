// BGZF: gzip members of at most 64 KiB of text that say, in a BC extra field, how long they are. The SAM
// specification, section 4.1. Inside of data/ only; see file.h.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "data/source/file.h"

namespace warren::data::internal {

struct BgzfHeader {
  std::size_t header_bytes = 0;
  std::size_t block_bytes = 0;  ///< header and trailer included
};

/// The header of a block that begins with `first`; none when there is none, or not all of it.
std::optional<BgzfHeader> ParseBgzfHeader(std::string_view first);

/// The value of the BC field among the extra fields of a gzip member: the length of its block less 1.
std::optional<std::size_t> FindBlockSize(std::string_view extra);

/// Whether a file begins with a BGZF block.
bool IsBgzf(const File& compressed);

std::unique_ptr<File> OpenBgzf(std::unique_ptr<File> compressed);

}  // namespace warren::data::internal
