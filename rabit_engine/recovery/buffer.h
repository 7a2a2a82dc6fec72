// Uninitialized byte buffers for the results of calls, and a stock of idle buffers. The same sizes recur, and
// reused memory causes no page faults.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace warren::recovery {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : Buffer(size, size) {}
  Buffer(const void* data, std::size_t size) : Buffer(size) {
    if (size > 0) std::memcpy(data_.get(), data, size);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  Buffer(const Buffer& other) : Buffer(other.data(), other.size()) {}
  Buffer& operator=(const Buffer& other) { return *this = Buffer(other); }
  ~Buffer() = default;

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  friend class BufferStock;
  Buffer(std::size_t size, std::size_t capacity)
      : data_(capacity == 0 ? nullptr : std::make_unique_for_overwrite<std::byte[]>(capacity)),
        size_(size),
        capacity_(capacity) {}

  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// Not thread-safe.
class BufferStock {
 public:
  Buffer Take(std::size_t size);
  void Return(Buffer buffer);

 private:
  /// The maximum number of bytes in idle buffers; buffers beyond this limit are freed.
  static constexpr std::size_t kMostIdleBytes = std::size_t{256} << 20;
  /// Smaller buffers are cheap to allocate and are not kept.
  static constexpr std::size_t kLeastBytes = std::size_t{16} << 10;

  std::vector<Buffer> idle_;  ///< by ascending capacity
  std::size_t idle_bytes_ = 0;
};

}  // namespace warren::recovery
