// Sums and products of 16-bit floats for algorithms that combine partial sums, which would round at each
// step. They get floats instead, and the result is rounded once, as by algorithms that combine all members'
// values at once (Algorithm::combines_at_once). The bits are the same.
//
// Works in pieces of 1 MiB of floats, so that they stay in the second-level cache. Twice as many bytes
// travel.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {

/// `run` reduces `count` floats in place, with the reduction that replaces the caller's. It is called at
/// least once, even for 0 elements, so that members that disagree about the count still meet.
using ReduceFloats = std::function<void(void* floats, std::size_t count, const Reduction& on_floats)>;

/// Reduces `count` elements, with a reduction that rounds (Reduction::rounds()), from `input` to `output`,
/// which may be the same, or nullptr on a member that gets no result.
void ReduceInFloats(const void* input, void* output, std::size_t count, const Reduction& reduction,
                    const ReduceFloats& run);

/// The same for a reduce-scatter; offsets as for ReduceScatterFunction.
using ReduceScatterFloats =
    std::function<void(void* floats, std::span<const std::size_t> offsets, const Reduction& on_floats)>;

/// `member` is the calling member.
void ReduceScatterInFloats(void* buffer, std::span<const std::size_t> offsets, const Reduction& reduction,
                           int member, const ReduceScatterFloats& run);

}  // namespace warren::collective
