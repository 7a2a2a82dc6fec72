// Copying into memory that other cores read next, and into memory that no cache will keep.
#pragma once

#include <cstddef>

namespace warren {

/// Where the rank runs that will read what is copied.
enum class Reader {
  kNear,     ///< on another core, which shares a cache with this one
  kFar,      ///< on a core that shares no cache with this one
  kCrowded,  ///< anywhere, because there are more ranks than cores; often on this core
};

/// std::memcpy to memory that another rank reads next (docs/explanation/engine.md has the measurements). For
/// a near reader, vector stores leave the data in the caches. A far one would have to fetch each modified
/// line from this core's caches, one by one; for it the data go to memory, from which its prefetchers bring
/// them. The stores are visible to other threads before any later store.
void CopyToShared(void* to, const void* from, std::size_t bytes, Reader reader);

/// std::memcpy with non-temporal stores, for a destination that is not in a cache and will not be when it is
/// read. Ordinary stores would fetch each line from memory before overwriting it. The stores are visible to
/// other threads before any later store. (std::memcpy on processors without such stores.)
void CopyPastCaches(void* to, const void* from, std::size_t bytes);

}  // namespace warren
