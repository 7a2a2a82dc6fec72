// Copies into memory that another core will read next, and into memory that will not stay in any cache.
#pragma once

#include <cstddef>

namespace warren {

/// The location of the rank that will read the copy.
enum class Reader {
  kNear,     ///< on another core that shares a cache with this one, or not known to be far
  kFar,      ///< on a core that shares no cache with this one
  kCrowded,  ///< on any core, often this one, because there are more ranks than cores
};

/// std::memcpy to memory that another rank reads next (docs/explanation/engine.md has the measurements). For
/// a near or crowded reader, the data stays in the caches. A far reader would have to fetch each modified
/// line from this core's caches, one by one; for a far reader, non-temporal stores write the data to memory,
/// from where the reader's prefetchers fetch it. The copy is visible to other threads before any later store
/// with release order.
void CopyToShared(void* to, const void* from, std::size_t bytes, Reader reader);

/// std::memcpy with non-temporal stores, for a destination that is not in a cache and will not be when it is
/// read. Ordinary stores would fetch each line from memory before overwriting it. The copy is visible to
/// other threads before any later store with release order. Plain std::memcpy on processors other than
/// x86-64.
void CopyPastCaches(void* to, const void* from, std::size_t bytes);

}  // namespace warren
