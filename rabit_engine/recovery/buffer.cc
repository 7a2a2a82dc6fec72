#include "rabit_engine/recovery/buffer.h"

#include <algorithm>

namespace warren::recovery {
namespace {

// A buffer with more than this many times the requested bytes is left for larger results.
constexpr std::size_t kMostWaste = 2;

}  // namespace

Buffer BufferStock::Take(std::size_t size) {
  const auto fits = std::ranges::lower_bound(idle_, size, {}, &Buffer::capacity_);
  if (size < kLeastBytes || fits == idle_.end() || fits->capacity_ / kMostWaste > size) return Buffer(size);
  Buffer buffer = std::move(*fits);
  idle_.erase(fits);
  idle_bytes_ -= buffer.capacity_;
  buffer.size_ = size;
  return buffer;
}

void BufferStock::Return(Buffer buffer) {
  if (buffer.capacity_ < kLeastBytes || idle_bytes_ + buffer.capacity_ > kMostIdleBytes) return;
  const auto place = std::ranges::lower_bound(idle_, buffer.capacity_, {}, &Buffer::capacity_);
  idle_bytes_ += buffer.capacity_;
  idle_.insert(place, std::move(buffer));
}

}  // namespace warren::recovery
