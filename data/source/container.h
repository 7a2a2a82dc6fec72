// Container formats of files, recognized by content, since names may be wrong or missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warren::data {

/// BGZF (bgzip, SAM specification) is gzip in small blocks that store their sizes; "zstd seekable" is zstd in
/// frames with a table of the frames at the end. Both can be read at any position. xz includes .lzma.
enum class Container : std::uint8_t { kPlain, kGzip, kBgzf, kZstd, kZstdSeekable, kBzip2, kXz };

/// Returns the name for messages: "plain", "gzip", "BGZF", "zstd", "zstd seekable", "bzip2", "xz".
std::string_view NameOf(Container container);

namespace internal {

/// Maximum number of bytes that RecogniseStart examines.
inline constexpr std::size_t kRecognisedBytes = 13;

/// Recognizes a container by the first bytes of a file. A file too short to be recognized is plain. Does not
/// distinguish BGZF from gzip, nor zstd seekable from zstd.
Container RecogniseStart(std::string_view first_bytes);

/// Returns "Parquet" or "Arrow" if a file begins with that format's magic number and is therefore not text;
/// otherwise an empty string.
std::string_view FormatWithColumns(std::string_view first_bytes);

/// Whether a file that RecogniseStart reports as xz is .lzma, the older format without checksums.
bool IsLzma(std::string_view first_bytes);

}  // namespace internal
}  // namespace warren::data
