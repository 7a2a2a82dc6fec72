#include "rabit_engine/recovery/buffer.h"

#include <algorithm>

namespace warren::recovery {
namespace {

// A buffer with more than this many times the requested bytes is left for larger results.
constexpr std::size_t kMostWaste = 2;

}  // namespace

Buffer BufferStock::Take(std::size_t size) {
  const auto fits =
      std::lower_bound(idle_.begin(), idle_.end(), size,
                       [](const Buffer& buffer, std::size_t wanted) { return buffer.capacity_ < wanted; });
  if (size < kLeastBytes || fits == idle_.end() || fits->capacity_ / kMostWaste > size) return Buffer(size);
  Buffer buffer = std::move(*fits);
  idle_.erase(fits);
  idle_bytes_ -= buffer.capacity_;
  buffer.size_ = size;
  return buffer;
}

void BufferStock::Return(Buffer buffer) {
  if (buffer.capacity_ < kLeastBytes || idle_bytes_ + buffer.capacity_ > kMostIdleBytes) return;
  const auto place =
      std::lower_bound(idle_.begin(), idle_.end(), buffer.capacity_,
                       [](const Buffer& other, std::size_t capacity) { return other.capacity_ < capacity; });
  idle_bytes_ += buffer.capacity_;
  idle_.insert(place, std::move(buffer));
}

}  // namespace warren::recovery
