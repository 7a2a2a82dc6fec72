// Which ranks could share memory and which do. All ranks of a world compute this from the same texts, with
// the same result. Values only.
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

/// For each rank, the lowest of the ranks it shares memory with, itself included; -1 if the rank shares
/// memory with no other. `reached`: "1" for a rank that reached the lowest rank of its group; `joined`: for
/// each rank, the lowest rank that it believes it shares memory with, or "-1". If one rank fails late, its
/// whole group returns to TCP.
std::vector<int> LeadersOf(std::span<const std::string> offers, std::span<const std::string> reached,
                           std::span<const std::string> joined);

}  // namespace warren
