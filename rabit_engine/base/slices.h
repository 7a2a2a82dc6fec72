// Slices of one buffer, one per rank, if each rank knows only its own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rabit_engine/base/communicator.h"

namespace warren {

/// One rank's statement about its slice: it begins at `begin`, in a buffer of `total` elements (or bytes).
/// Callers know whether `end` is its end or its length.
struct Slice {
  std::size_t total = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Returns the size + 1 offsets of `size` equal slices of `bytes`.
std::vector<std::size_t> EqualOffsets(int size, std::size_t bytes);

/// Returns every rank's slice, by rank. All ranks call it. Throws what Communicator::Allgather throws.
std::vector<Slice> GatherSlices(Communicator& communicator, const Slice& own);

/// Returns where the slices, in rank order, begin and where the last one ends if they fill a buffer of
/// `total` without gaps: slices.size() + 1 offsets. Otherwise returns fewer offsets: the last one is where
/// the first slice that does not fit in would have to begin. `end_is_size`: each slice's `end` is its length.
std::vector<std::size_t> JoinedOffsets(std::span<const Slice> slices, std::size_t total,
                                       bool end_is_size = false);

}  // namespace warren
