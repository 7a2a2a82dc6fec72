// Determines which ranks could share memory and which do. All ranks of a world compute this from the same
// strings, with the same result. Pure functions.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace warren {

/// Returns the ranks with a nonempty offer (HostSegment::Offer::text), by group; ascending within a group.
std::map<std::string, std::vector<int>> GroupsOf(std::span<const std::string> offers);
/// Returns the part of an offer that is common to the ranks of a group.
std::string GroupOf(const std::string& offer);

/// Returns, for each rank, the lowest of the ranks it shares memory with, itself included; -1 if the rank
/// shares memory with no other. `reached`: "1" for each rank that completed the first step: the lowest rank
/// of a group by creating the memory, the others by connecting to the lowest rank. `joined`: for each rank,
/// the lowest rank of the segment that it has set up, or "-1". If a rank that reached the lowest rank fails
/// afterwards, its whole group uses TCP. Throws EngineError if an entry of `joined` is malformed.
std::vector<int> LeadersOf(std::span<const std::string> offers, std::span<const std::string> reached,
                           std::span<const std::string> joined);

}  // namespace warren
