// The slices of one buffer, one per rank, and allgathers in which each rank knows only its own slice or
// string.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/call/communicator.h"

namespace warren {

/// One rank's slice as the rank describes it: it begins at `begin`, in a buffer of `total` elements (or
/// bytes). `end` is the slice's end or its length, depending on the caller.
struct Slice {
  std::size_t total = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Returns the size + 1 offsets of `size` slices of `bytes` bytes each.
std::vector<std::size_t> EqualOffsets(int size, std::size_t bytes);

/// Returns every rank's slice, in rank order. A collective call. Throws what Communicator::Run throws.
std::vector<Slice> GatherSlices(Communicator& communicator, const Slice& own);

/// If the slices, in rank order, fill a buffer of `total` elements without gaps, returns their offsets and
/// the end of the last slice: slices.size() + 1 numbers. Otherwise returns fewer numbers, the last of which
/// is the offset at which the first slice that does not fit should begin. `end_is_size`: each slice's `end`
/// is its length.
std::vector<std::size_t> JoinedOffsets(std::span<const Slice> slices, std::size_t total,
                                       bool end_is_size = false);

/// Returns the offsets of an allgather whose ranks know only their own slices. A collective call. Throws
/// Misuse if the slices are not contiguous in rank order.
std::vector<std::size_t> GatherOffsets(Communicator& communicator, const Slice& own);

/// A function that runs an allgather of the slices of `buffer` at these offsets.
using AllgatherBytes = std::function<void(void* buffer, std::span<const std::size_t> offsets)>;

/// Returns every rank's string, in rank order. Makes an allgather of the lengths and, unless all strings are
/// empty, one of the strings. A collective call.
std::vector<std::string> AllgatherTexts(int rank, int world_size, const std::string& own,
                                        const AllgatherBytes& allgather);
std::vector<std::string> AllgatherTexts(Communicator& communicator, const std::string& own);

}  // namespace warren
