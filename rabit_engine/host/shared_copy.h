// Copies into memory that another core will read next, and into memory that will not stay in any cache.
#pragma once

#include <cstddef>

namespace warren {

/// The location of the rank that will read the copy.
enum class Reader {
  kNear,     ///< on another core that shares a cache with this one
  kFar,      ///< on a core that shares no cache with this one
  kCrowded,  ///< anywhere, because there are more ranks than cores; often on this core
};

/// std::memcpy to memory that another rank reads next (docs/explanation/engine.md has the measurements). For
/// a near reader, vector stores leave the data in the caches. A far reader would have to fetch each modified
/// line from this core's caches, one by one; for a far reader, non-temporal stores write the data to memory,
/// from where its prefetchers fetch it. The stores are visible to other threads before any later store.
void CopyToShared(void* to, const void* from, std::size_t bytes, Reader reader);

/// std::memcpy with non-temporal stores, for a destination that is not in a cache and will not be when it is
/// read. Ordinary stores would fetch each line from memory before overwriting it. The stores are visible to
/// other threads before any later store. (std::memcpy on processors without such stores.)
void CopyPastCaches(void* to, const void* from, std::size_t bytes);

}  // namespace warren
