#include "data/source/bgzf_file.h"

#include <fmt/format.h>

#ifndef ZLIB_CONST
#define ZLIB_CONST
#endif
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "data/array.h"
#include "data/error.h"
#include "data/source/little_endian.h"
#include "data/source/spare_decoders.h"

namespace warren::data::internal {
namespace {

constexpr std::size_t kFixedHeaderBytes = 12;   // without the extra fields
constexpr std::size_t kUsualHeaderBytes = 18;   // with only the BC field
constexpr std::size_t kTrailerBytes = 8;        // CRC and text size
constexpr std::size_t kLeastDeflateBytes = 2;   // an empty deflate stream
constexpr std::size_t kMostBlockBytes = 65536;  // limit for the compressed size and for the text size

struct Block {
  std::uint64_t at = 0;          ///< offset in the file
  std::uint64_t text_at = 0;     ///< offset in the text
  std::uint32_t bytes = 0;       ///< size in the file
  std::uint32_t text_bytes = 0;  ///< size of the text
};

[[noreturn]] void Fail(const File& compressed, std::uint64_t at, std::string_view what) {
  throw DataError(fmt::format("{}: BGZF block at byte {}: {}", compressed.name(), at, what));
}

std::optional<BgzfHeader> ReadHeader(const File& compressed, std::uint64_t at) {
  const std::uint64_t left = compressed.size() - at;
  std::array<char, kUsualHeaderBytes> usual{};
  if (left < usual.size()) return std::nullopt;
  compressed.ReadAt(at, usual.data(), usual.size());
  if (const auto header = ParseBgzfHeader({usual.data(), usual.size()})) return header;
  const std::size_t header_bytes = kFixedHeaderBytes + LoadLittleEndian<std::uint16_t>(&usual[10]);
  if (header_bytes <= usual.size() || left < header_bytes) return std::nullopt;
  Array<char> whole;
  whole.resize(header_bytes);
  compressed.ReadAt(at, whole.data(), whole.size());
  return ParseBgzfHeader({whole.data(), whole.size()});
}

/// Inflates blocks. Keeps the text of the last block that was requested only in part.
class BlockInflater {
 public:
  explicit BlockInflater(const File& compressed) : compressed_(compressed) {
    if (inflateInit2(&zlib_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    file_bytes_.resize(kMostBlockBytes);
    text_.resize(kMostBlockBytes);
  }
  ~BlockInflater() { inflateEnd(&zlib_); }
  BlockInflater(const BlockInflater&) = delete;
  BlockInflater& operator=(const BlockInflater&) = delete;

  /// Writes the whole text of a block, block.text_bytes bytes, to `to`.
  void Inflate(const Block& block, char* to) {
    const char* const bytes = file_bytes_.data();
    compressed_.ReadAt(block.at, file_bytes_.data(), block.bytes);
    const auto header = ParseBgzfHeader({bytes, block.bytes});
    if (!header || header->block_bytes != block.bytes) {
      Fail(compressed_, block.at,
           "its header differs from when the file was opened: the file was changed while it was read");
    }
    const char* const trailer = bytes + block.bytes - kTrailerBytes;
    inflateReset(&zlib_);
    zlib_.next_in = reinterpret_cast<const Bytef*>(bytes + header->header_bytes);
    zlib_.avail_in = static_cast<uInt>(block.bytes - header->header_bytes - kTrailerBytes);
    zlib_.next_out = reinterpret_cast<Bytef*>(to);
    zlib_.avail_out = block.text_bytes;
    const int result = inflate(&zlib_, Z_FINISH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_STREAM_END || zlib_.avail_in != 0 || zlib_.avail_out != 0) {
      Fail(compressed_, block.at,
           fmt::format("damaged: {}, expected {} bytes of text",
                       zlib_.msg == nullptr ? "wrong length" : zlib_.msg, block.text_bytes));
    }
    const auto expected = LoadLittleEndian<std::uint32_t>(trailer);
    const auto found = crc32(0, reinterpret_cast<const Bytef*>(to), block.text_bytes);
    if (found != expected) {
      Fail(compressed_, block.at,
           fmt::format("damaged: found text with CRC {:08x}, expected {:08x}", found, expected));
    }
  }

  /// Returns the text of a block, inflating it unless text_ already holds it. Valid until the next call of
  /// Text.
  const char* Text(const Block& block) {
    if (!Holds(block)) {
      remembered_ = kNone;
      Inflate(block, text_.data());
      remembered_ = block.at;
    }
    return text_.data();
  }

  bool Holds(const Block& block) const { return remembered_ == block.at; }
  bool HoldsNothing() const { return remembered_ == kNone; }
  void Forget() { remembered_ = kNone; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  const File& compressed_;
  z_stream zlib_{};
  Array<char> file_bytes_;
  Array<char> text_;
  std::uint64_t remembered_ = kNone;  ///< Block::at of the block in text_
};

/// Finds all blocks of a file, and checks that they are complete and end with the empty block.
class BlockChain {
 public:
  explicit BlockChain(const File& compressed) : compressed_(compressed), inflater_(compressed) {
    while (at_ < compressed_.size()) Next();
    if (!ends_empty_) {
      throw DataError(fmt::format(
          "{}: BGZF ends at byte {} without the empty block that marks its end: the file was cut off",
          compressed_.name(), compressed_.size()));
    }
  }

  Array<Block> TakeBlocks() { return std::move(blocks_); }
  std::uint64_t text_bytes() const { return text_bytes_; }

 private:
  void Next() {
    const auto header = ReadHeader(compressed_, at_);
    if (!header) {
      Fail(compressed_, at_,
           fmt::format("found no complete block header in the last {} bytes of the file",
                       compressed_.size() - at_));
    }
    const std::uint64_t left = compressed_.size() - at_;
    if (header->block_bytes > left) {
      Fail(compressed_, at_,
           fmt::format("says it is {} bytes long, but the file ends after {}: it was cut off",
                       header->block_bytes, left));
    }
    std::array<char, 4> size{};
    compressed_.ReadAt(at_ + header->block_bytes - size.size(), size.data(), size.size());
    const auto text_bytes = LoadLittleEndian<std::uint32_t>(size.data());
    if (text_bytes > kMostBlockBytes) {
      Fail(compressed_, at_,
           fmt::format("found {} bytes of text, expected {} at most", text_bytes, kMostBlockBytes));
    }
    const Block block{at_, text_bytes_, static_cast<std::uint32_t>(header->block_bytes), text_bytes};
    ends_empty_ = text_bytes == 0;
    // An empty block is never read, so it is checked here.
    if (ends_empty_) {
      char none = 0;
      inflater_.Inflate(block, &none);
    } else {
      blocks_.push_back(block);
    }
    text_bytes_ += text_bytes;
    at_ += header->block_bytes;
  }

  const File& compressed_;
  BlockInflater inflater_;
  Array<Block> blocks_;
  std::uint64_t at_ = 0;
  std::uint64_t text_bytes_ = 0;
  bool ends_empty_ = false;
};

class BgzfFile : public File {
 public:
  BgzfFile(std::unique_ptr<File> compressed, Array<Block> blocks, std::uint64_t text_bytes)
      : File(compressed->name(), text_bytes),
        compressed_(std::move(compressed)),
        blocks_(std::move(blocks)) {}

  void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
    RequireWithin(offset, bytes);
    if (bytes == 0) return;
    const Block* block = BlockWith(offset);
    auto inflater = Inflater(*block);
    for (; bytes > 0; ++block) {
      const std::size_t skip = offset - block->text_at;
      const std::size_t taken = std::min<std::size_t>(bytes, block->text_bytes - skip);
      if (taken == block->text_bytes) {
        inflater->Inflate(*block, to);
      } else {
        std::memcpy(to, inflater->Text(*block) + skip, taken);
        if (skip + taken == block->text_bytes) inflater->Forget();  // a sequential read needs the next block
      }
      to += taken;
      offset += taken;
      bytes -= taken;
    }
    spare_.Return(std::move(inflater));
  }

 private:
  const Block* BlockWith(std::uint64_t offset) const {
    const auto is_before = [](std::uint64_t place, const Block& block) { return place < block.text_at; };
    return std::upper_bound(blocks_.begin(), blocks_.end(), offset, is_before) - 1;
  }

  std::unique_ptr<BlockInflater> Inflater(const Block& first) const {
    const auto worth = [&](const BlockInflater& spare) {
      return spare.Holds(first) ? 2U : spare.HoldsNothing() ? 1U : 0U;
    };
    auto inflater = spare_.Take(worth);
    return inflater ? std::move(inflater) : std::make_unique<BlockInflater>(*compressed_);
  }

  std::unique_ptr<File> compressed_;
  Array<Block> blocks_;  ///< blocks with text, in order
  mutable SpareDecoders<BlockInflater> spare_;
};

}  // namespace

std::optional<std::size_t> FindBlockSize(std::string_view extra) {
  constexpr std::size_t kFieldHeaderBytes = 4;  // two letters and a length
  while (extra.size() >= kFieldHeaderBytes) {
    const std::size_t length = LoadLittleEndian<std::uint16_t>(&extra[2]);
    if (extra.size() - kFieldHeaderBytes < length) return std::nullopt;
    if (extra.starts_with("BC") && length == 2) return LoadLittleEndian<std::uint16_t>(&extra[4]);
    extra.remove_prefix(kFieldHeaderBytes + length);
  }
  return std::nullopt;
}

std::optional<BgzfHeader> ParseBgzfHeader(std::string_view first) {
  using namespace std::string_view_literals;
  // gzip's magic number, the deflate method, and flags that announce extra fields and nothing else.
  if (first.size() < kFixedHeaderBytes || !first.starts_with("\x1F\x8B\x08\x04"sv)) return std::nullopt;
  const std::size_t extra_bytes = LoadLittleEndian<std::uint16_t>(&first[10]);
  if (first.size() < kFixedHeaderBytes + extra_bytes) return std::nullopt;
  const auto block_size = FindBlockSize(first.substr(kFixedHeaderBytes, extra_bytes));
  if (!block_size) return std::nullopt;
  const BgzfHeader header{kFixedHeaderBytes + extra_bytes, *block_size + 1};
  if (header.block_bytes < header.header_bytes + kLeastDeflateBytes + kTrailerBytes) return std::nullopt;
  return header;
}

bool IsBgzf(const File& compressed) {
  return ReadHeader(compressed, 0).has_value();
}

std::unique_ptr<File> OpenBgzf(std::unique_ptr<File> compressed) {
  BlockChain chain(*compressed);
  const std::uint64_t text_bytes = chain.text_bytes();
  return std::make_unique<BgzfFile>(std::move(compressed), chain.TakeBlocks(), text_bytes);
}

}  // namespace warren::data::internal
