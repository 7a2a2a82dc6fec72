// Reductions of device types on the host: the engine's own reductions, plus float8 and averages.
#pragma once

#include <cstddef>

#include "rabit_engine/device/operation.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::device {

/// Returns the host's counterpart of a reduction on the device. For kAverage it is a sum; Divide then turns
/// the result into averages.
Reduction HostReduction(Type type, ReduceOp operation);

/// Turns sums over `ranks` ranks into averages, rounding to nearest even, or toward zero for integers.
void Divide(Type type, void* buffer, std::size_t count, int ranks);

/// Returns the value of a float8 as defined by the OCP ("OCP 8-bit Floating Point Specification", 2023):
/// E4M3, which has no infinities, or E5M2.
float FromFloat8(Type type, unsigned char bits);
/// Rounds to nearest even. Infinities and values that are too large become the greatest finite number, as on
/// GPUs; NaN stays NaN.
unsigned char ToFloat8(Type type, float value);

}  // namespace warren::device
