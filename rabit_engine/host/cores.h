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

/// The number of cores that this process may use, limited by its affinity mask and by the CPU quota (cgroup
/// v2) of its container, if there is one. At least 1.
int UsableCores();
/// The number of cores that the container's quota allows, rounded up; the largest int if there is no quota.
int CoresOfQuota();

}  // namespace warren
