// Sums and products of 16-bit floats by algorithms that combine partial sums. These would round at each step;
// so they are given floats instead, and the result is rounded once, as by algorithms that combine all
// members' values at once (Algorithm::combines_at_once). The bits are then the same.
//
// Piece by piece, so that the floats stay in the second-level cache: 1 MiB of them. Twice as many bytes
// travel.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {

/// `run` reduces `count` floats in place, with the reduction that takes the place of the caller's. It is
/// called at least once, also for no elements: members who disagree about the count still meet.
using ReduceFloats = std::function<void(void* floats, std::size_t count, const Reduction& on_floats)>;

/// Reduces `count` elements of a reduction that rounds (Reduction::rounds()) from `input` to `output`, which
/// may be the same; nullptr: on a member that gets no result.
void ReduceInFloats(const void* input, void* output, std::size_t count, const Reduction& reduction,
                    const ReduceFloats& run);

/// The same for a reduce-scatter; offsets as ReduceScatterFunction has them.
using ReduceScatterFloats =
    std::function<void(void* floats, std::span<const std::size_t> offsets, const Reduction& on_floats)>;

/// `member` is the one that calls.
void ReduceScatterInFloats(void* buffer, std::span<const std::size_t> offsets, const Reduction& reduction,
                           int member, const ReduceScatterFloats& run);

}  // namespace warren::collective
