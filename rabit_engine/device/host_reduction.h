// What the engine on the host does for device types: those that it knows, float8, and averages.
#pragma once

#include <cstddef>

#include "rabit_engine/device/collective.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::device {

/// The engine's reduction; for kAverage that of a sum.
Reduction HostReduction(Type type, Operation operation);

/// Makes averages of sums over `ranks`: the quotient, rounded to nearest even, for whole numbers towards
/// zero.
void Divide(Type type, void* buffer, std::size_t count, int ranks);

/// float8 as the OCP has it ("OCP 8-bit Floating Point Specification", 2023): E4M3 without infinities, E5M2.
float FromFloat8(Type type, unsigned char bits);
/// Rounds to nearest even. What is too large becomes the greatest finite number, as on GPUs; NaN stays one.
unsigned char ToFloat8(Type type, float value);

}  // namespace warren::device
