#pragma once

#include <cstddef>
#include <cstring>

namespace warren {

/// memcpy that may get null pointers for 0 bytes, and one pointer twice.
inline void CopyBytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace warren
