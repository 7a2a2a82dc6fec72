// Compressed files for tests, made in memory by the compression libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace warren::data {

/// Lines of numbers that compress moderately; the same for the same seed.
std::string SomeText(std::size_t bytes, std::uint32_t seed = 1);

/// The bytes with one bit changed.
std::string Flipped(std::string bytes, std::size_t bit);

/// Pseudorandom bytes, which do not compress; the same in every call.
std::string RandomBytes(std::size_t bytes);

std::string Gzip(std::string_view text);
std::string Bzip2(std::string_view text);
std::string Xz(std::string_view text);
std::string Lzma(std::string_view text);
/// One frame with a checksum.
std::string Zstd(std::string_view text);

/// Blocks of `block_bytes` of text each, followed by the empty block that marks the end of BGZF.
std::string Bgzf(std::string_view text, std::size_t block_bytes = 65280);
/// One BGZF block, with the extra fields `before` and `behind` around BGZF's own.
std::string BgzfBlock(std::string_view text, std::string_view before = {}, std::string_view behind = {});

enum class Checksums : std::uint8_t { kNone, kInTable, kInFrames };
/// Frames of `frame_bytes` of text each, followed by the seek table.
std::string ZstdSeekable(std::string_view text, std::size_t frame_bytes,
                         Checksums checksums = Checksums::kInTable);

/// Writes the seek table of the zstd seekable format.
class SeekTableWriter {
 public:
  explicit SeekTableWriter(bool has_checksums) : has_checksums_(has_checksums) {}
  void Add(std::uint32_t compressed_bytes, std::uint32_t text_bytes, std::uint32_t checksum = 0);
  std::string Table() const;

 private:
  bool has_checksums_;
  std::uint32_t frames_ = 0;
  std::string entries_;
};

/// The low-order `bytes` bytes of the value, least significant byte first.
std::string LittleEndian(std::uint64_t value, std::size_t bytes);

}  // namespace warren::data
