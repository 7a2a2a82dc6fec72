#pragma once

#include <cstddef>
#include <cstring>

namespace warren {

/// Like memcpy, but `to` may equal `from`, and both may be null if `bytes` is 0.
inline void CopyBytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace warren
