// All algorithms there are: one row each. docs/explanation/extending.md shows what a new one takes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

/// In the order of their ids.
std::span<const Algorithm* const> Algorithms();
/// nullptr: there is none of this name.
const Algorithm* FindAlgorithm(std::string_view name);
/// From 1; part of CallTag, so that ranks which take different algorithms for one call find out.
std::uint8_t IdOf(const Algorithm& algorithm);

/// Adds an algorithm of the program's own, which must outlive all communicators: before the first of them is
/// made, in the same order on all ranks. WARREN_ALGORITHM can ask for it from then on. Throws Misuse when its
/// name is taken or it serves no collective. Not thread safe.
void Register(const Algorithm& algorithm);

}  // namespace warren::collective
