// Sums and products of 16-bit floats for algorithms that combine partial sums, which would round at each
// step. These algorithms are given 32-bit floats instead, and the result is rounded once. It has the same
// bits as the result of an algorithm that combines all members' values in one step
// (Algorithm::combines_at_once).
//
// The data is processed in pieces of up to 1 MiB of floats, which stay in the L2 cache. Twice as many bytes
// are sent.
#pragma once

#include <functional>

#include "rabit_engine/call/operation.h"

namespace warren::collective {

/// Runs one piece of the operation in place, on floats and with the reduction for floats. Called at least
/// once, even for 0 elements, so that members that disagree about the count detect it.
using RunOnFloats = std::function<void(const Operation& on_floats)>;

/// Runs a reduction that rounds (Reduction::rounds()). `member` is the calling member's index.
void RunInFloats(const Operation& operation, int member, const RunOnFloats& run);

}  // namespace warren::collective
