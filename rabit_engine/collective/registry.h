// All algorithms, one row each. docs/explanation/extending.md describes how to add one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

/// Returns all algorithms, in the order of their ids.
std::span<const Algorithm* const> Algorithms();
/// Returns nullptr if there is no algorithm of this name.
const Algorithm* FindAlgorithm(std::string_view name);
/// Ids start at 1 and are part of CallTag, so that ranks notice if they use different algorithms for one
/// call.
std::uint8_t IdOf(const Algorithm& algorithm);

/// Adds a program's own algorithm, which must outlive all communicators. Call it before the first
/// communicator is made, and in the same order on all ranks. From then on, WARREN_ALGORITHM can request it.
/// Throws Misuse if its name is taken or it serves no collective. Not thread-safe.
void Register(const Algorithm& algorithm);

}  // namespace warren::collective
