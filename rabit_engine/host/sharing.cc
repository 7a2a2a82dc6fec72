#include "rabit_engine/host/sharing.h"

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/told_number.h"

namespace warren {

// Drops the last word, which differs for each rank. A group name may contain spaces.
std::string GroupOf(const std::string& offer) {
  return offer.substr(0, offer.rfind(' '));
}

std::map<std::string, std::vector<int>> GroupsOf(std::span<const std::string> offers) {
  std::map<std::string, std::vector<int>> groups;
  for (int rank = 0; rank < static_cast<int>(offers.size()); ++rank) {
    if (!offers[rank].empty()) groups[GroupOf(offers[rank])].push_back(rank);
  }
  return groups;
}

std::vector<int> LeadersOf(std::span<const std::string> offers, std::span<const std::string> reached,
                           std::span<const std::string> joined) {
  const auto groups = GroupsOf(offers);
  std::vector<int> leaders(offers.size(), -1);
  std::map<int, std::vector<int>> sharing;
  for (int rank = 0; rank < static_cast<int>(joined.size()); ++rank) {
    const int leader =
        ToldNumber(joined[rank], "message about shared memory", -1, static_cast<int>(offers.size()) - 1);
    sharing[leader].push_back(rank);
  }
  for (const auto& [leader, ranks] : sharing) {
    if (leader < 0) continue;
    const auto group = groups.find(GroupOf(offers[leader]));
    if (group == groups.end()) continue;
    std::vector<int> expected;
    for (const int rank : group->second) {
      if (reached[rank] == "1") expected.push_back(rank);
    }
    if (ranks != expected) continue;
    for (const int rank : ranks) leaders[rank] = leader;
  }
  return leaders;
}

}  // namespace warren
