// Copying into memory that another core has read last, and out of it into memory that no cache will keep.
#pragma once

#include <cstddef>

namespace warren {

/// std::memcpy for a destination whose cache lines other cores hold: they have to be taken away from there.
/// Ordinary stores ask for each line, and wait as soon as the store buffer is full; the processor's string
/// copy overwrites whole lines without being given what they held, many at a time. 64 KiB to a core that is
/// far took 1.6 instead of 8.4 us, to a near one 0.7 instead of 1.7 (docs/explanation/engine.md).
void CopyToShared(void* to, const void* from, std::size_t bytes);

/// std::memcpy by non-temporal stores: into a destination that is neither in a cache nor will be there when
/// it is read. Ordinary stores fetch each line from memory before they overwrite it. Ordered before what
/// follows, also for other threads. (Where the processor has no such stores: std::memcpy.)
void CopyPastCaches(void* to, const void* from, std::size_t bytes);

}  // namespace warren
