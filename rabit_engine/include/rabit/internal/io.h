// Streams over memory.
#ifndef RABIT_INTERNAL_IO_H_
#define RABIT_INTERNAL_IO_H_

#include <dmlc/io.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "rabit/internal/utils.h"
#include "rabit/serializable.h"

namespace rabit {
namespace utils {
inline namespace warren_v1 {

/// A stream with a position.
typedef dmlc::SeekStream SeekStream;

/// The return type of Write: void before dmlc-core 0.6, since then the number of bytes written.
typedef decltype(std::declval<dmlc::Stream&>().Write("", std::size_t())) Written;

/// A stream over caller-owned memory of fixed size, which must outlive the stream. Reading past the end
/// returns fewer bytes; writing past it throws dmlc::Error and writes nothing.
struct MemoryFixSizeBuffer : public SeekStream {
 public:
  /// The position to pass to Seek for the end of the memory. Programs use both spellings.
  static constexpr std::size_t SeekEnd = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kSeekEnd = std::numeric_limits<std::size_t>::max();

  MemoryFixSizeBuffer(void* buffer, std::size_t size)
      : begin_(static_cast<char*>(buffer)), size_(size), at_(0) {}
  ~MemoryFixSizeBuffer() override {}

  std::size_t Read(void* out, std::size_t size) override {
    if (at_ > size_) return 0;
    const std::size_t bytes = std::min(size_ - at_, size);
    if (bytes != 0) std::memcpy(out, begin_ + at_, bytes);
    at_ += bytes;
    return bytes;
  }
  Written Write(const void* data, std::size_t size) override {
    if (size == 0) return static_cast<Written>(size);
    if (at_ > size_ || size > size_ - at_) {
      Error("writing %zu bytes at position %zu of a memory buffer of %zu bytes", size, at_, size_);
      return static_cast<Written>(0);
    }
    std::memcpy(begin_ + at_, data, size);
    at_ += size;
    return static_cast<Written>(size);
  }
  void Seek(std::size_t position) override { at_ = position == kSeekEnd ? size_ : position; }
  std::size_t Tell() override { return at_; }
  /// Whether the position is exactly at the end.
  virtual bool AtEnd() const { return at_ == size_; }

 private:
  char* begin_;
  std::size_t size_;
  std::size_t at_;
};

/// A stream over a caller-owned string, which must outlive the stream and grows as the stream is written.
struct MemoryBufferStream : public SeekStream {
 public:
  explicit MemoryBufferStream(std::string* buffer) : buffer_(buffer), at_(0) {}
  ~MemoryBufferStream() override {}

  std::size_t Read(void* out, std::size_t size) override {
    if (at_ > buffer_->size()) {
      Error("reading at position %zu of a memory buffer of %zu bytes", at_, buffer_->size());
      return 0;
    }
    const std::size_t bytes = std::min(buffer_->size() - at_, size);
    if (bytes != 0) std::memcpy(out, buffer_->data() + at_, bytes);
    at_ += bytes;
    return bytes;
  }
  Written Write(const void* data, std::size_t size) override {
    if (size == 0) return static_cast<Written>(size);
    if (buffer_->size() < at_ + size) buffer_->resize(at_ + size);
    std::memcpy(&(*buffer_)[at_], data, size);
    at_ += size;
    return static_cast<Written>(size);
  }
  void Seek(std::size_t position) override { at_ = position; }
  std::size_t Tell() override { return at_; }
  /// Whether the position is exactly at the end.
  virtual bool AtEnd() const { return at_ == buffer_->size(); }

 private:
  std::string* buffer_;
  std::size_t at_;
};

}  // namespace warren_v1
}  // namespace utils
}  // namespace rabit
#endif  // RABIT_INTERNAL_IO_H_
