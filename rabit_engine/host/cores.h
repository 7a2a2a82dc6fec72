// The cores that a rank may run on, and whether each rank on a host can have a core to itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warren {

/// Encodes core numbers as text for the other ranks, four cores per hexadecimal digit, the lowest cores
/// first: cores 0, 1 and 5 are "32".
std::string EncodeCores(std::span<const int> cores);
std::vector<int> DecodeCores(std::string_view text);

/// Whether every rank can have a core to itself. `cores_of_ranks`: the cores that each rank may run on. True
/// for ranks bound to different single cores, although each of them sees only one core.
bool EachHasACore(std::span<const std::vector<int>> cores_of_ranks);

}  // namespace warren
