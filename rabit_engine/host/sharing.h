// Who could share memory and who does, as all ranks of a world conclude from the same words. Values only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace warren {

/// Those whose offers (HostSegment::Offer::text) say that they may share, in the order of ranks; an empty
/// offer is of nobody.
std::map<std::string, std::vector<int>> GroupsOf(std::span<const std::string> offers);
/// What the ranks of a group have in common in their offers.
std::string GroupOf(const std::string& offer);

/// For each rank the lowest of those that it shares memory with, itself among them; -1 for one that shares
/// with nobody. `reached`: "1" of those that reached the lowest of their group; `joined`: the lowest of those
/// that each shares with, as far as it knows, or "-1". One that failed late takes its whole group back to
/// TCP.
std::vector<int> LeadersOf(std::span<const std::string> offers, std::span<const std::string> reached,
                           std::span<const std::string> joined);

}  // namespace warren
