// A Source reads the stored bytes of a file; a Decoder, one class per format, decodes them piece by piece;
// DecompressedStream connects the two and distinguishes a proper end from a truncated file.
#include "data/source/stream.h"

#include <bzlib.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <lzma.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#ifndef ZLIB_CONST
#define ZLIB_CONST
#endif
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string_view>

#include "data/array.h"
#include "data/error.h"
#include "data/source/bgzf_file.h"
#include "data/source/container.h"
#include "data/source/file.h"
#include "posix/descriptor.h"
#include "posix/files.h"

namespace warren::data {
namespace {

/// Limits a number of bytes to `unsigned`, the type that zlib and libbz2 take.
unsigned Clamp(std::size_t bytes) {
  return static_cast<unsigned>(std::min<std::size_t>(bytes, std::numeric_limits<unsigned>::max()));
}

/// The stored bytes of a descriptor or an open file.
class Source {
 public:
  explicit Source(std::unique_ptr<File> stored) : name_(stored->name()), stored_(std::move(stored)) {}
  explicit Source(const std::string& path) : name_(path == "-" ? "standard input" : path) {
    if (path != "-") {
      file_ = posix::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file_) throw DataError(SystemFailure(name_, "opening", errno));
    }
    struct stat status {};
    if (fstat(fd(), &status) == 0 && S_ISDIR(status.st_mode)) {
      throw DataError(fmt::format("{}: is a folder, expected a file", name_));
    }
    posix::WillReadInOrder(fd());
  }
  Source(Source&& other) noexcept
      : name_(std::move(other.name_)),
        file_(std::move(other.file_)),
        stored_(std::move(other.stored_)),
        offset_(other.offset_),
        buffer_(std::move(other.buffer_)),
        unread_(std::exchange(other.unread_, {})) {}
  Source& operator=(Source&&) = delete;

  const std::string& name() const { return name_; }
  /// Number of bytes taken so far.
  std::uint64_t offset() const { return offset_; }

  /// The bytes that have been read from the file but not yet taken.
  std::string_view unread() const { return unread_; }
  void Take(std::size_t bytes) {
    unread_.remove_prefix(bytes);
    offset_ += bytes;
  }
  /// Appends more bytes to unread(), which may have at most kMostPeeked bytes left. Returns false at the end.
  bool Fill() {
    buffer_.resize(kMostPeeked + kReadBytes);
    if (!unread_.empty()) std::memmove(buffer_.data(), unread_.data(), unread_.size());
    const std::size_t got = ReadSome(buffer_.data() + unread_.size(), kReadBytes);
    unread_ = {buffer_.data(), unread_.size() + got};
    return got > 0;
  }
  /// Returns the next `bytes` bytes without taking them; fewer if the file ends first. `bytes` is at most
  /// kMostPeeked.
  std::string_view Peek(std::size_t bytes) {
    while (unread_.size() < bytes && Fill()) {
    }
    return unread_.substr(0, bytes);
  }
  /// Reads and takes up to `bytes` bytes, bypassing the buffer, and returns their number; unread() must be
  /// empty.
  std::size_t ReadThrough(char* to, std::size_t bytes) {
    const std::size_t got = ReadSome(to, bytes);
    offset_ += got;
    return got;
  }

 private:
  static constexpr std::size_t kMostPeeked = internal::kRecognisedBytes;
  static constexpr std::size_t kReadBytes = 256 * 1024;

  std::size_t ReadSome(char* to, std::size_t bytes) {
    if (stored_) return ReadSomeStored(to, bytes);
    while (true) {
      const ssize_t got = read(fd(), to, bytes);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EAGAIN) {
        // Another process has made our standard input non-blocking.
        pollfd input{fd(), POLLIN, 0};
        (void)poll(&input, 1, -1);
      } else if (errno != EINTR) {
        throw DataError(
            SystemFailure(name_, fmt::format("reading at byte {}", offset_ + unread_.size()), errno));
      }
    }
  }

  std::size_t ReadSomeStored(char* to, std::size_t bytes) {
    const std::uint64_t at = offset_ + unread_.size();
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, stored_->size() - at));
    stored_->ReadAt(at, to, bytes);
    return bytes;
  }

  int fd() const { return file_ ? file_.get() : STDIN_FILENO; }

  std::string name_;
  posix::Descriptor file_;  ///< empty for standard input and if stored_ is set
  std::unique_ptr<File> stored_;
  std::uint64_t offset_ = 0;
  Array<char> buffer_;
  std::string_view unread_;  ///< part of buffer_
};

class PlainStream : public Stream {
 public:
  explicit PlainStream(Source source) : Stream(source.name()), source_(std::move(source)) {}

  std::size_t Read(char* to, std::size_t bytes) override {
    const std::string_view peeked = source_.unread().substr(0, bytes);
    if (peeked.empty()) return source_.ReadThrough(to, bytes);
    std::memcpy(to, peeked.data(), peeked.size());
    source_.Take(peeked.size());
    return peeked.size();
  }

 private:
  Source source_;
};

/// Thrown by decoders, which have access to neither the file's name nor the position.
struct Damage {
  std::string reason;
};

/// Decodes one format. A member (or frame, or stream) may be followed by another member, if the format allows
/// it, and by padding as the format defines it; anything else is damage.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Advances `in` and `out` by the bytes taken and written. Returns whether the file may end here, with no
  /// text left. `in` may be empty if the previous step had more text than fitted into `out`.
  virtual bool Step(std::string_view& in, std::span<char>& out) = 0;
};

class GzipDecoder : public Decoder {
 public:
  GzipDecoder() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&zlib_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecoder() override { inflateEnd(&zlib_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  bool Step(std::string_view& in, std::span<char>& out) override {
    if (!in_member_ && in.empty()) return MayEnd();
    if (!in_member_ && members_ > 0 && (in_padding_ || in.front() == '\0')) return Padding(in);
    if (!in_member_) BeginMember();
    return Inflate(in, out);
  }

 private:
  void BeginMember() {
    inflateReset(&zlib_);
    header_ = {};
    header_.extra = extra_.data();
    header_.extra_max = static_cast<uInt>(extra_.size());
    inflateGetHeader(&zlib_, &header_);
    in_member_ = true;
  }

  bool Inflate(std::string_view& in, std::span<char>& out) {
    zlib_.next_in = reinterpret_cast<const Bytef*>(in.data());
    zlib_.avail_in = Clamp(in.size());
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = Clamp(out.size());
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    in.remove_prefix(static_cast<std::size_t>(reinterpret_cast<const char*>(zlib_.next_in) - in.data()));
    out = out.subspan(static_cast<std::size_t>(reinterpret_cast<char*>(zlib_.next_out) - out.data()));
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) {
      in_member_ = false;
      ++members_;
      return MayEnd();
    }
    // Z_BUF_ERROR only means that no progress was possible.
    if (result != Z_OK && result != Z_BUF_ERROR) {
      throw Damage{zlib_.msg == nullptr ? fmt::format("zlib's error {}", result) : zlib_.msg};
    }
    return false;
  }

  bool Padding(std::string_view& in) {
    in_padding_ = true;
    in.remove_prefix(std::min(in.find_first_not_of('\0'), in.size()));
    if (!in.empty()) throw Damage{"found " + Quote(in, 0) + " after the zeros at the end, expected nothing"};
    return true;
  }

  /// Whether a file may end with the last member. The last member of a BGZF file must be empty, so that a
  /// file truncated between members can be detected.
  bool MayEnd() const {
    const std::string_view extra(reinterpret_cast<const char*>(extra_.data()),
                                 std::min<std::size_t>(header_.extra_len, extra_.size()));
    const bool is_bgzf = header_.extra != nullptr && internal::FindBlockSize(extra).has_value();
    return !is_bgzf || zlib_.total_out == 0;
  }

  z_stream zlib_{};
  gz_header header_{};
  std::array<Bytef, 64> extra_{};  ///< the first bytes of a member's extra fields
  std::uint64_t members_ = 0;
  bool in_member_ = false;
  bool in_padding_ = false;
};

class ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : zstd_(ZSTD_createDCtx()) {
    if (zstd_ == nullptr) throw std::bad_alloc();
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(zstd_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  bool Step(std::string_view& in, std::span<char>& out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t rest = ZSTD_decompressStream(zstd_, &to, &from);
    in.remove_prefix(from.pos);
    out = out.subspan(to.pos);
    if (ZSTD_isError(rest) != 0) Fail(rest);
    return rest == 0;
  }

 private:
  [[noreturn]] static void Fail(std::size_t result) {
    switch (ZSTD_getErrorCode(result)) {
      case ZSTD_error_memory_allocation:
        throw std::bad_alloc();
      case ZSTD_error_frameParameter_windowTooLarge:
        throw Damage{
            "found a frame with a window of more than 128 MiB (zstd --ultra --long=28 and up), expected less"};
      default:
        throw Damage{ZSTD_getErrorName(result)};
    }
  }

  ZSTD_DCtx* zstd_;
};

class Bzip2Decoder : public Decoder {
 public:
  Bzip2Decoder() = default;
  ~Bzip2Decoder() override { EndStream(); }
  Bzip2Decoder(const Bzip2Decoder&) = delete;
  Bzip2Decoder& operator=(const Bzip2Decoder&) = delete;

  bool Step(std::string_view& in, std::span<char>& out) override {
    if (!in_stream_) BeginStream();
    std::string_view before = in;
    bzip2_.next_in = const_cast<char*>(in.data());  // bzip2 does not write to it
    bzip2_.avail_in = Clamp(in.size());
    bzip2_.next_out = out.data();
    bzip2_.avail_out = Clamp(out.size());
    const int result = BZ2_bzDecompress(&bzip2_);
    in.remove_prefix(static_cast<std::size_t>(bzip2_.next_in - before.data()));
    out = out.subspan(static_cast<std::size_t>(bzip2_.next_out - out.data()));
    if (result == BZ_STREAM_END) {
      EndStream();
      return true;
    }
    if (result == BZ_MEM_ERROR) throw std::bad_alloc();
    if (result == BZ_DATA_ERROR_MAGIC) throw Damage{"found something else, expected a bzip2 stream"};
    if (result != BZ_OK) throw Damage{"checksum or coding is wrong"};
    return false;
  }

 private:
  void BeginStream() {
    bzip2_ = {};
    if (BZ2_bzDecompressInit(&bzip2_, 0, 0) != BZ_OK) throw std::bad_alloc();
    in_stream_ = true;
  }
  void EndStream() {
    if (in_stream_) BZ2_bzDecompressEnd(&bzip2_);
    in_stream_ = false;
  }

  bz_stream bzip2_{};
  bool in_stream_ = false;
};

class XzDecoder : public Decoder {
 public:
  explicit XzDecoder(bool is_lzma) : is_lzma_(is_lzma) {}
  ~XzDecoder() override { lzma_end(&lzma_); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  bool Step(std::string_view& in, std::span<char>& out) override {
    if (!in_stream_ && streams_ > 0 && is_lzma_)
      throw Damage{"found more data after the end of .lzma, expected nothing"};
    if (!in_stream_ && streams_ > 0 && in.front() == '\0') return Padding(in);
    if (!in_stream_) BeginStream();
    return Decode(in, out);
  }

 private:
  static constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 30;

  void BeginStream() {
    if (padding_ % kPaddingUnit != 0) throw Damage{"padding between streams is not a multiple of 4 bytes"};
    padding_ = 0;
    const lzma_ret result = is_lzma_ ? lzma_alone_decoder(&lzma_, kMostMemory)
                                     : lzma_stream_decoder(&lzma_, kMostMemory, LZMA_TELL_UNSUPPORTED_CHECK);
    if (result != LZMA_OK) throw std::bad_alloc();
    in_stream_ = true;
  }

  bool Decode(std::string_view& in, std::span<char>& out) {
    lzma_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    lzma_.avail_in = in.size();
    lzma_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    lzma_.avail_out = out.size();
    const lzma_ret result = lzma_code(&lzma_, LZMA_RUN);
    in.remove_prefix(in.size() - lzma_.avail_in);
    out = out.subspan(out.size() - lzma_.avail_out);
    if (result == LZMA_STREAM_END) {
      in_stream_ = false;
      ++streams_;
      return true;
    }
    // LZMA_BUF_ERROR only means that no progress was possible.
    if (result != LZMA_OK && result != LZMA_BUF_ERROR) Fail(result);
    return false;
  }

  [[noreturn]] void Fail(lzma_ret result) {
    switch (result) {
      case LZMA_MEM_ERROR:
        throw std::bad_alloc();
      case LZMA_MEMLIMIT_ERROR:
        throw Damage{fmt::format("needs {} MiB of memory to be decompressed, expected at most {}",
                                 lzma_memusage(&lzma_) >> 20, kMostMemory >> 20)};
      case LZMA_FORMAT_ERROR:
        throw Damage{"found something else, expected an xz stream"};
      case LZMA_OPTIONS_ERROR:
        throw Damage{"uses options that liblzma does not know"};
      case LZMA_UNSUPPORTED_CHECK:
        throw Damage{"uses an integrity check that liblzma does not know"};
      default:
        throw Damage{"checksum or coding is wrong"};
    }
  }

  /// Skips the zeros between streams, whose number must be a multiple of four. "The .xz File Format", 1.1.0,
  /// section 2.2.
  bool Padding(std::string_view& in) {
    const std::size_t zeros = std::min(in.find_first_not_of('\0'), in.size());
    in.remove_prefix(zeros);
    padding_ = (padding_ + zeros) % kPaddingUnit;
    return padding_ == 0;
  }

  static constexpr std::size_t kPaddingUnit = 4;

  bool is_lzma_;
  lzma_stream lzma_ = LZMA_STREAM_INIT;
  std::uint64_t streams_ = 0;
  std::size_t padding_ = 0;
  bool in_stream_ = false;
};

class DecompressedStream : public Stream {
 public:
  DecompressedStream(Source source, Container container, std::unique_ptr<Decoder> decoder)
      : Stream(source.name()),
        source_(std::move(source)),
        container_(container),
        decoder_(std::move(decoder)) {}

  std::size_t Read(char* to, std::size_t bytes) override {
    std::span<char> out(to, bytes);
    while (bytes > 0 && out.size() == bytes) {
      if (source_.unread().empty() && !text_left_ && !source_.Fill()) {
        if (may_end_) return 0;
        throw DataError(fmt::format("{}: {} data end at byte {}, but more is expected: the file was cut off",
                                    name(), NameOf(container_), source_.offset()));
      }
      Step(out);
    }
    return bytes - out.size();
  }

 private:
  void Step(std::span<char>& out) {
    std::string_view in = source_.unread();
    try {
      may_end_ = decoder_->Step(in, out);
    } catch (const Damage& damage) {
      throw DataError(fmt::format("{}: {} data, at byte {} or before: {}", name(), NameOf(container_),
                                  source_.offset() + source_.unread().size() - in.size(), damage.reason));
    }
    source_.Take(source_.unread().size() - in.size());
    text_left_ = out.empty() && !may_end_;
  }

  Source source_;
  Container container_;
  std::unique_ptr<Decoder> decoder_;
  bool may_end_ = false;
  bool text_left_ = false;  ///< whether the decoder may have more text
};

std::unique_ptr<Decoder> MakeDecoder(Container container, std::string_view first_bytes) {
  switch (container) {
    case Container::kGzip:
      return std::make_unique<GzipDecoder>();
    case Container::kZstd:
      return std::make_unique<ZstdDecoder>();
    case Container::kBzip2:
      return std::make_unique<Bzip2Decoder>();
    case Container::kXz:
      return std::make_unique<XzDecoder>(internal::IsLzma(first_bytes));
    default:
      return nullptr;
  }
}

std::unique_ptr<Stream> OpenStream(Source source) {
  const std::string_view first_bytes = source.Peek(internal::kRecognisedBytes);
  const Container container = internal::RecogniseStart(first_bytes);
  auto decoder = MakeDecoder(container, first_bytes);
  if (!decoder) return std::make_unique<PlainStream>(std::move(source));
  return std::make_unique<DecompressedStream>(std::move(source), container, std::move(decoder));
}

}  // namespace

std::unique_ptr<Stream> OpenStream(const std::string& path) {
  return OpenStream(Source(path));
}

std::unique_ptr<Stream> OpenStream(std::unique_ptr<File> stored) {
  return OpenStream(Source(std::move(stored)));
}

}  // namespace warren::data
