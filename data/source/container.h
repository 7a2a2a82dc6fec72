// What files are, told by their content: names may lie or be missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warren::data {

/// BGZF is gzip in small blocks that say how long they are (bgzip, of the SAM specification); "zstd seekable"
/// is zstd in frames with a table of them at the end. Those two can be read at any place. xz stands for .lzma
/// as well.
enum class Container : std::uint8_t { kPlain, kGzip, kBgzf, kZstd, kZstdSeekable, kBzip2, kXz };

/// For messages: "plain", "gzip", "BGZF", "zstd", "zstd seekable", "bzip2", "xz".
std::string_view NameOf(Container container);

namespace internal {

/// As many bytes RecogniseStart looks at, at most.
inline constexpr std::size_t kRecognisedBytes = 13;

/// By the first bytes of a file. What is too short to be recognised is plain. Does not tell BGZF from gzip
/// nor zstd seekable from zstd.
Container RecogniseStart(std::string_view first_bytes);

/// "Parquet" or "Arrow" for a file that begins as those do, which are no text; else nothing.
std::string_view FormatWithColumns(std::string_view first_bytes);

/// Whether a file that RecogniseStart takes for xz is .lzma, which came before xz and has no checksums.
bool IsLzma(std::string_view first_bytes);

}  // namespace internal
}  // namespace warren::data
