// BGZF: gzip members with at most 64 KiB of text, each of which stores its size in a BC extra field (SAM
// specification, section 4.1). Internal to data/; see file.h.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "data/source/file.h"

namespace warren::data::internal {

struct BgzfHeader {
  std::size_t header_bytes = 0;
  std::size_t block_bytes = 0;  ///< including header and trailer
};

/// Parses the header at the start of `first`; nullopt if it is not a BGZF header or is incomplete.
std::optional<BgzfHeader> ParseBgzfHeader(std::string_view first);

/// Returns the value of the BC field among the extra fields of a gzip member: the block size in bytes
/// minus 1. nullopt if there is no such field.
std::optional<std::size_t> FindBlockSize(std::string_view extra);

/// Whether a file begins with the header of a BGZF block.
bool IsBgzf(const File& compressed);

std::unique_ptr<File> OpenBgzf(std::unique_ptr<File> compressed);

}  // namespace warren::data::internal
