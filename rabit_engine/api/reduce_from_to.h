// Reductions from one buffer to another, and averages. The engine's own reductions are in place and do not
// average.
#pragma once

#include <functional>

#include "rabit_engine/call/operation.h"

namespace warren::api {

/// A function that runs a reduction in place.
using RunInPlace = std::function<void(const Operation& in_place)>;

/// Runs a reduction that is not in place, or is an average. If GoesInPieces, the elements are reduced in a
/// copy, piece by piece. Otherwise they are reduced in `send` if the operation is in place or `receive` is
/// this rank's slice of `send`, in `receive` if this rank receives all elements, and in a copy in all other
/// cases. Averages of 16-bit floats are computed in a copy of type float and rounded once, after the
/// division.
void ReduceFromTo(const Operation& operation, int rank, int world_size, const RunInPlace& run);

/// Whether the operation is a large reduce-scatter without Operation::in_place. Such an operation is copied
/// and reduced one piece at a time, because allocating a full copy in each call costs more than the
/// reduction. The engine sees only the pieces, so the caller must first check that all ranks have the same
/// offsets.
bool GoesInPieces(const Operation& operation, int world_size);

}  // namespace warren::api
