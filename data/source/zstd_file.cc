#include "data/source/zstd_file.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "data/array.h"
#include "data/error.h"
#include "data/source/little_endian.h"
#include "data/source/spare_decoders.h"

namespace warren::data::internal {
namespace {

// The seek table: a skippable frame's magic number and length, the entries, and the footer with the number of
// entries, a byte of flags and another magic number. An entry has the compressed size, the text size and
// optionally a checksum.
constexpr std::uint32_t kTableMagic = 0x184D2A5E;
constexpr std::uint32_t kFooterMagic = 0x8F92EAB1;
constexpr std::size_t kTableHeaderBytes = 8;
constexpr std::size_t kFooterBytes = 9;
constexpr std::size_t kPlainEntryBytes = 8;
constexpr std::size_t kCheckedEntryBytes = 12;
constexpr unsigned kHasChecksums = 0x80;
constexpr unsigned kReservedFlags = 0x7C;

// The size of the shortest frame with text, and the maximum number of bytes of text per byte of a frame: each
// block has at least 4 bytes, and at most 128 KiB of text. RFC 8878, section 3.1.1.
constexpr std::uint64_t kLeastFrameBytes = 10;
constexpr std::uint64_t kMostTextForByte = 128 * 1024 / 4;

/// The position and properties of the seek table.
struct SeekTable {
  std::uint64_t begin = 0;
  std::uint32_t entries = 0;
  bool has_checksums = false;

  std::uint64_t first_entry() const { return begin + kTableHeaderBytes; }
  std::size_t entry_bytes() const { return has_checksums ? kCheckedEntryBytes : kPlainEntryBytes; }
};

struct Frame {
  std::uint64_t at = 0;       ///< offset in the file
  std::uint64_t text_at = 0;  ///< offset in the text
  std::uint32_t bytes = 0;
  std::uint32_t text_bytes = 0;
  std::uint32_t checksum = 0;  ///< low half of the text's XXH64, if the table has checksums
};

std::optional<SeekTable> FindSeekTable(const File& compressed) {
  if (compressed.size() < kTableHeaderBytes + kFooterBytes) return std::nullopt;
  std::array<char, kFooterBytes> footer{};
  compressed.ReadAt(compressed.size() - footer.size(), footer.data(), footer.size());
  const auto flags = static_cast<unsigned char>(footer[4]);
  if (LoadLittleEndian<std::uint32_t>(&footer[5]) != kFooterMagic || (flags & kReservedFlags) != 0)
    return std::nullopt;
  SeekTable table{0, LoadLittleEndian<std::uint32_t>(footer.data()), (flags & kHasChecksums) != 0};
  const std::uint64_t content_bytes = std::uint64_t{table.entries} * table.entry_bytes() + kFooterBytes;
  if (content_bytes + kTableHeaderBytes > compressed.size()) return std::nullopt;
  table.begin = compressed.size() - content_bytes - kTableHeaderBytes;
  std::array<char, kTableHeaderBytes> header{};
  compressed.ReadAt(table.begin, header.data(), header.size());
  const bool is_one = LoadLittleEndian<std::uint32_t>(header.data()) == kTableMagic &&
                      LoadLittleEndian<std::uint32_t>(&header[4]) == content_bytes;
  return is_one ? std::optional(table) : std::nullopt;
}

[[noreturn]] void Fail(const File& compressed, const Frame& frame, std::string_view what) {
  throw DataError(fmt::format("{}: zstd frame at byte {}: {}", compressed.name(), frame.at, what));
}

/// Decompresses one frame at a time from its beginning, and can pause anywhere in it. The window, which takes
/// most of the memory, is limited to 128 MiB, whatever sizes the table states.
class FrameReader {
 public:
  /// `checked`: whether frames have checksums in the seek table.
  FrameReader(const File& compressed, bool checked)
      : compressed_(compressed), checked_(checked), zstd_(ZSTD_createDCtx()) {
    if (zstd_ == nullptr) throw std::bad_alloc();
    buffer_.resize(ZSTD_DStreamInSize());
  }
  ~FrameReader() { ZSTD_freeDCtx(zstd_); }
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  void Begin(const Frame& frame) {
    frame_ = frame;
    position_ = 0;
    unread_ = frame.bytes;
    in_ = {buffer_.data(), 0, 0};
    rest_ = 0;
    XXH64_reset(hash_.get(), 0);
    ZSTD_DCtx_reset(zstd_, ZSTD_reset_session_only);
  }

  void Read(char* to, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t got = Step(to, bytes);
      if (got == 0 && AllTaken()) {
        Fail(compressed_, frame_,
             fmt::format("ends after {} bytes of text, expected {}", position_, frame_.text_bytes));
      }
      to += got;
      bytes -= got;
    }
  }

  void Skip(std::size_t bytes) {
    constexpr std::size_t kScratchBytes = 65536;
    scratch_.resize(kScratchBytes);
    while (bytes > 0) {
      const std::size_t part = std::min(bytes, kScratchBytes);
      Read(scratch_.data(), part);
      bytes -= part;
    }
  }

  /// Throws DataError unless the frame ends here and, if `checked_`, its text has the right checksum. Call it
  /// after all text of the frame has been read.
  void End() {
    while (rest_ != 0 || !AllTaken()) {
      const std::size_t taken_before = frame_.bytes - unread_ + in_.pos;
      char more = 0;
      if (Step(&more, 1) > 0) {
        Fail(compressed_, frame_,
             fmt::format("holds more than the {} bytes of text expected", frame_.text_bytes));
      }
      const bool stuck = AllTaken() && frame_.bytes - unread_ + in_.pos == taken_before;
      if (rest_ != 0 && stuck) {
        Fail(compressed_, frame_,
             fmt::format("does not end within the {} bytes of the seek table", frame_.bytes));
      }
    }
    const auto found = static_cast<std::uint32_t>(XXH64_digest(hash_.get()));
    if (checked_ && found != frame_.checksum) {
      Fail(compressed_, frame_,
           fmt::format("damaged: found text with checksum {:08x}, expected {:08x}", found, frame_.checksum));
    }
  }

  const Frame& frame() const { return frame_; }
  std::size_t position() const { return position_; }
  bool AtEnd() const { return position_ == frame_.text_bytes; }

 private:
  bool AllTaken() const { return in_.pos == in_.size && unread_ == 0; }

  std::size_t Step(char* to, std::size_t bytes) {
    if (in_.pos == in_.size && unread_ > 0) {
      const std::size_t part = std::min<std::size_t>(unread_, buffer_.size());
      compressed_.ReadAt(frame_.at + frame_.bytes - unread_, buffer_.data(), part);
      unread_ -= static_cast<std::uint32_t>(part);
      in_ = {buffer_.data(), part, 0};
    }
    ZSTD_outBuffer out{to, bytes, 0};
    rest_ = ZSTD_decompressStream(zstd_, &out, &in_);
    if (ZSTD_getErrorCode(rest_) == ZSTD_error_memory_allocation) throw std::bad_alloc();
    if (ZSTD_isError(rest_) != 0)
      Fail(compressed_, frame_, fmt::format("damaged: {}", ZSTD_getErrorName(rest_)));
    if (checked_) XXH64_update(hash_.get(), to, out.pos);
    position_ += out.pos;
    return out.pos;
  }

  const File& compressed_;
  bool checked_;
  ZSTD_DCtx* zstd_;
  Array<char> buffer_;
  Array<char> scratch_;
  Frame frame_;
  std::size_t position_ = 0;  ///< position in the text of the frame
  std::uint32_t unread_ = 0;  ///< bytes of the frame not yet read from the file
  ZSTD_inBuffer in_{};
  std::size_t rest_ = 0;  ///< the latest result of ZSTD_decompressStream; 0 at the end of a frame
  struct FreeHash {
    void operator()(XXH64_state_t* hash) const { XXH64_freeState(hash); }
  };
  std::unique_ptr<XXH64_state_t, FreeHash> hash_{XXH64_createState()};  ///< hash of the frame's text so far
};

class ZstdSeekableFile : public File {
 public:
  ZstdSeekableFile(std::unique_ptr<File> compressed, Array<Frame> frames, std::uint64_t text_bytes,
                   bool has_checksums)
      : File(compressed->name(), text_bytes),
        compressed_(std::move(compressed)),
        frames_(std::move(frames)),
        has_checksums_(has_checksums) {}

  void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
    RequireWithin(offset, bytes);
    if (bytes == 0) return;
    const Frame* frame = FrameWith(offset);
    auto reader = ReaderFor(*frame, offset - frame->text_at);
    for (; bytes > 0; ++frame) {
      const std::size_t skip = offset - frame->text_at;
      const std::size_t taken = std::min<std::size_t>(bytes, frame->text_bytes - skip);
      if (!Suits(*reader, *frame, skip)) reader->Begin(*frame);
      reader->Skip(skip - reader->position());
      reader->Read(to, taken);
      if (reader->AtEnd()) reader->End();
      to += taken;
      offset += taken;
      bytes -= taken;
    }
    spare_.Return(std::move(reader));
  }

 private:
  static bool Suits(const FrameReader& reader, const Frame& frame, std::size_t position) {
    return reader.frame().at == frame.at && !reader.AtEnd() && reader.position() <= position;
  }

  const Frame* FrameWith(std::uint64_t offset) const {
    const auto is_before = [](std::uint64_t place, const Frame& frame) { return place < frame.text_at; };
    return std::upper_bound(frames_.begin(), frames_.end(), offset, is_before) - 1;
  }

  std::unique_ptr<FrameReader> ReaderFor(const Frame& frame, std::size_t position) const {
    const auto worth = [&](const FrameReader& spare) -> std::uint64_t {
      return Suits(spare, frame, position) ? 2 + spare.position() : spare.AtEnd() ? 1 : 0;
    };
    auto reader = spare_.Take(worth);
    return reader ? std::move(reader) : std::make_unique<FrameReader>(*compressed_, has_checksums_);
  }

  std::unique_ptr<File> compressed_;
  Array<Frame> frames_;  ///< frames with text, in order
  bool has_checksums_;
  mutable SpareDecoders<FrameReader> spare_;
};

/// Reads the table's entries and checks them; decompresses only empty frames.
class TableReader {
 public:
  TableReader(const File& compressed, const SeekTable& table)
      : compressed_(compressed), table_(table), empty_(compressed, false) {
    constexpr std::size_t kEntriesAtOnce = 8192;
    Array<char> entries;
    for (std::size_t i = 0; i < table.entries; i += kEntriesAtOnce) {
      entries.resize(std::min<std::size_t>(kEntriesAtOnce, table.entries - i) * table.entry_bytes());
      compressed.ReadAt(table.first_entry() + i * table.entry_bytes(), entries.data(), entries.size());
      for (const char* at = entries.begin(); at != entries.end(); at += table.entry_bytes()) Add(at);
    }
    if (at_ != table.begin) {
      throw DataError(fmt::format("{}: zstd seek table at byte {}: its frames are {} bytes long, expected {}",
                                  compressed.name(), table.begin, at_, table.begin));
    }
  }

  Array<Frame> TakeFrames() { return std::move(frames_); }
  std::uint64_t text_bytes() const { return text_bytes_; }

 private:
  void Add(const char* entry) {
    const Frame frame{at_, text_bytes_, LoadLittleEndian<std::uint32_t>(entry),
                      LoadLittleEndian<std::uint32_t>(entry + 4),
                      table_.has_checksums ? LoadLittleEndian<std::uint32_t>(entry + 8) : 0};
    if (frame.bytes > table_.begin - at_) {
      Fail(compressed_, frame,
           fmt::format("is {} bytes long by the seek table, but that begins after {}", frame.bytes,
                       table_.begin - at_));
    }
    if (frame.text_bytes > 0 && (frame.bytes < kLeastFrameBytes ||
                                 frame.text_bytes > std::uint64_t{frame.bytes} * kMostTextForByte)) {
      Fail(compressed_, frame,
           fmt::format("found {} bytes of text in {} by the seek table, more than zstd can", frame.text_bytes,
                       frame.bytes));
    }
    // An empty frame is never read, so it is checked here.
    if (frame.text_bytes == 0) {
      empty_.Begin(frame);
      empty_.End();
    } else {
      frames_.push_back(frame);
    }
    at_ += frame.bytes;
    text_bytes_ += frame.text_bytes;
  }

  const File& compressed_;
  const SeekTable& table_;
  FrameReader empty_;
  Array<Frame> frames_;
  std::uint64_t at_ = 0;
  std::uint64_t text_bytes_ = 0;
};

}  // namespace

bool HasSeekTable(const File& compressed) {
  return FindSeekTable(compressed).has_value();
}

std::unique_ptr<File> OpenZstdSeekable(std::unique_ptr<File> compressed) {
  const auto table = FindSeekTable(*compressed);
  if (!table) {
    throw DataError(fmt::format("{}: found no zstd seek table that ends at byte {}, the end of the file",
                                compressed->name(), compressed->size()));
  }
  TableReader reader(*compressed, *table);
  const std::uint64_t text_bytes = reader.text_bytes();
  return std::make_unique<ZstdSeekableFile>(std::move(compressed), reader.TakeFrames(), text_bytes,
                                            table->has_checksums);
}

}  // namespace warren::data::internal
