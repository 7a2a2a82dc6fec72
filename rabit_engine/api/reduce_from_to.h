// Reductions from one buffer to another, and averages, built on the engine's, which are in place and have no
// averages.
#pragma once

#include <functional>

#include "rabit_engine/call/operation.h"

namespace warren::api {

/// Runs a reduction in place.
using RunInPlace = std::function<void(const Operation& in_place)>;

/// Runs a reduction that is not in place or is an average: in place in `send` if `receive` is this rank's
/// slice of it, else in `receive` if that has room for all elements, else on a copy; in pieces if
/// GoesInPieces. An average rounds once, after the division.
void ReduceFromTo(const Operation& operation, int rank, int world_size, const RunInPlace& run);

/// A large reduce-scatter from one buffer to another is copied and reduced one piece at a time: a copy of the
/// whole would be newly allocated memory in each call, which costs more than the reduction. The engine then
/// sees only the pieces, so that whoever makes the call compares the offsets of the ranks first.
bool GoesInPieces(const Operation& operation, int world_size);

}  // namespace warren::api
