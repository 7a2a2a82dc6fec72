// All algorithms, one row each. docs/explanation/extending.md describes how to add one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

/// Returns all algorithms, in the order of their ids.
std::span<const Algorithm* const> Algorithms();
/// Returns nullptr if no algorithm has this name.
const Algorithm* FindAlgorithm(std::string_view name);
/// Ids start at 1 and are part of CallTag, so that ranks detect that they use different algorithms for one
/// call.
std::uint8_t IdOf(const Algorithm& algorithm);

/// Adds an algorithm of the program, which must outlive all communicators. All ranks must register the same
/// algorithms in the same order, before the first communicator is made. WARREN_ALGORITHM can then request the
/// algorithm. Throws Misuse if the algorithm's name is taken, it serves no collective, or 255 algorithms
/// exist already. Not thread-safe.
void Register(const Algorithm& algorithm);

}  // namespace warren::collective
