// Sums and products of 16-bit floats for algorithms that combine partial sums, which would round at each
// step. They get floats instead, and the result is rounded once, as by algorithms that combine all members'
// values at once (Algorithm::combines_at_once). The bits are the same.
//
// Works in pieces of 1 MiB of floats, so that they stay in the second-level cache. Twice as many bytes
// travel.
#pragma once

#include <functional>

#include "rabit_engine/call/operation.h"

namespace warren::collective {

/// Runs an operation on floats in place, with the reduction that replaces the caller's, and is called at
/// least once, even for 0 elements, so that members that disagree about the count still meet.
using RunOnFloats = std::function<void(const Operation& on_floats)>;

/// Runs a reduction that rounds (Reduction::rounds()). `member` is the calling member.
void RunInFloats(const Operation& operation, int member, const RunOnFloats& run);

}  // namespace warren::collective
