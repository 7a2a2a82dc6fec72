// Slices of one buffer, one a rank, where each rank knows its own only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rabit_engine/base/communicator.h"

namespace warren {

/// What one rank says of its slice: of `total` elements (or bytes) those from `begin` on. Whether `end` is
/// where it ends or how long it is, is for the caller to know.
struct Slice {
  std::size_t total = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// size + 1 offsets of as many equal slices of `bytes`.
std::vector<std::size_t> EqualOffsets(int size, std::size_t bytes);

/// Every rank's slice, by rank. All ranks call it. Errors are those of Communicator::Allgather.
std::vector<Slice> GatherSlices(Communicator& communicator, const Slice& own);

/// The offsets of the slices as far as they join, in the order of the ranks, into one buffer: one more than
/// there are slices when all do; else the last belongs to the first slice that does not. `end_is_size`: each
/// slice's end is its length.
std::vector<std::size_t> JoinedOffsets(std::span<const Slice> slices, std::size_t total,
                                       bool end_is_size = false);

}  // namespace warren
