// Which cores a rank may run on, and whether all ranks of a host can have one each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warren {

/// Numbers of cores as text for the other ranks, four cores a hexadecimal digit: of 0, 1 and 5 "32".
std::string EncodeCores(std::span<const int> cores);
std::vector<int> DecodeCores(std::string_view text);

/// Whether each rank can run on a core that no other needs, given those that each may run on. Ranks that are
/// bound to a core each can, although none of them sees more than one.
bool EachHasACore(std::span<const std::vector<int>> cores_of_ranks);

/// Cores that this process may use: its affinity mask, and its share of a CPU quota (cgroup v2) if there is
/// one.
int UsableCores();
/// Cores that the quota allows, rounded up; as many as there are numbers for when there is none.
int CoresOfQuota();

}  // namespace warren
