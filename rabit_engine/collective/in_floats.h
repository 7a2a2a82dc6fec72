// Sums and products of 16-bit floats for algorithms that combine partial sums, which would round at each
// step. Such algorithms are given floats instead, and the result is rounded once, as in algorithms that
// combine all members' values in one step (Algorithm::combines_at_once). The bits of the result are the same.
//
// The data is processed in pieces of 1 MiB of floats, which stay in the L2 cache. Twice as many bytes are
// sent.
#pragma once

#include <functional>

#include "rabit_engine/call/operation.h"

namespace warren::collective {

/// Runs an operation on floats in place, with the reduction that replaces the caller's. Called at least once,
/// even for 0 elements, so that members that disagree about the count detect it.
using RunOnFloats = std::function<void(const Operation& on_floats)>;

/// Runs a reduction that rounds (Reduction::rounds()). `member` is the calling member's index.
void RunInFloats(const Operation& operation, int member, const RunOnFloats& run);

}  // namespace warren::collective
