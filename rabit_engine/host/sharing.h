// Which ranks could share memory and which do. All ranks of a world compute it from the same texts. Values
// only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace warren {

/// The ranks whose offers (HostSegment::Offer::text) say that they may share memory, by group, in the order
/// of ranks. Empty offers are skipped.
std::map<std::string, std::vector<int>> GroupsOf(std::span<const std::string> offers);
/// The part of an offer that is common to the ranks of a group.
std::string GroupOf(const std::string& offer);

/// For each rank, the lowest of the ranks it shares memory with, itself included; -1 if it shares with no
/// other. `reached`: "1" for a rank that reached the lowest rank of its group; `joined`: the lowest rank that
/// each rank believes to share memory with, or "-1". If one rank fails late, its whole group returns to TCP.
std::vector<int> LeadersOf(std::span<const std::string> offers, std::span<const std::string> reached,
                           std::span<const std::string> joined);

}  // namespace warren
