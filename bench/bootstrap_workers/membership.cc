#include "bench/bootstrap_workers/membership.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

namespace warren::bench {
namespace {

using ByRank = std::vector<const Membership*>;

std::string FaultOfTree(const Membership& member, const ByRank& by_rank) {
  const int size = static_cast<int>(by_rank.size());
  for (const int peer : member.tree) {
    if (peer < 0 || peer >= size || peer == member.rank) {
      return fmt::format("rank {} has tree neighbour {}", member.rank, peer);
    }
    if (!by_rank[peer]->tree.Contains(member.rank)) {
      return fmt::format("rank {} has tree neighbour {}, but not the other way round", member.rank, peer);
    }
    if (peer != member.parent && by_rank[peer]->parent != member.rank) {
      return fmt::format("ranks {} and {} are tree neighbours, but neither is the other's parent",
                         member.rank, peer);
    }
  }
  if ((member.rank == 0) != (member.parent == -1)) {
    return fmt::format("rank {} has parent {}", member.rank, member.parent);
  }
  if (member.parent != -1 && !member.tree.Contains(member.parent)) {
    return fmt::format("the parent {} of rank {} is not among its tree neighbours", member.parent,
                       member.rank);
  }
  int steps = 0;
  for (int rank = member.rank; rank != 0; rank = by_rank[rank]->parent, ++steps) {
    if (by_rank[rank]->parent < 0 || steps > size)
      return fmt::format("rank {} is not below rank 0", member.rank);
  }
  return {};
}

std::string FaultOfLinks(const Membership& member, int size) {
  const int prev = size == 1 ? -1 : (member.rank + size - 1) % size;
  const int next = size == 1 ? -1 : (member.rank + 1) % size;
  if (member.ring_prev != prev || member.ring_next != next) {
    return fmt::format("rank {} stands between {} and {} in the ring, expected {} and {}", member.rank,
                       member.ring_prev, member.ring_next, prev, next);
  }
  std::vector<int> wanted(member.tree.begin(), member.tree.end());
  for (const int peer : {prev, next}) {
    if (peer >= 0) wanted.push_back(peer);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<int> made(member.links.begin(), member.links.end());
  std::sort(made.begin(), made.end());
  if (made != wanted) {
    return fmt::format("rank {} has links to {}, expected {}", member.rank, fmt::join(made, " "),
                       fmt::join(wanted, " "));
  }
  return {};
}

}  // namespace

void PeerList::Add(std::int32_t rank) {
  if (count == static_cast<std::int32_t>(kMaxPeers)) throw std::length_error("a worker with too many peers");
  ranks[count++] = rank;
}

bool PeerList::Contains(std::int32_t rank) const {
  return std::find(begin(), end(), rank) != end();
}

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kIdle:
      return "not started";
    case Stage::kConnects:
      return "connecting to the tracker";
    case Stage::kGreets:
      return "waiting for the tracker's magic";
    case Stage::kWaitsForRank:
      return "waiting for a rank";
    case Stage::kWaitsForPlan:
      return "waiting to be told whom to connect to";
    case Stage::kMakesLinks:
      return "connecting to peers";
    case Stage::kAcceptsLinks:
      return "waiting for peers to connect";
    case Stage::kLinked:
      return "linked";
    case Stage::kHasShutDown:
      return "shut down";
  }
  return "lost";
}

std::string DescribeStages(std::span<const Membership> members) {
  std::map<Stage, int> counts;
  for (const Membership& member : members) ++counts[member.stage];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [stage, count] : counts) parts.push_back(fmt::format("{} {}", count, StageName(stage)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string FindFault(std::span<const Membership> members, bool has_tree) {
  const int size = static_cast<int>(members.size());
  ByRank by_rank(members.size(), nullptr);
  for (const Membership& member : members) {
    if (member.world_size != size) {
      return fmt::format("rank {} was told of {} workers, expected {}", member.rank, member.world_size, size);
    }
    if (member.rank < 0 || member.rank >= size)
      return fmt::format("rank {} in a world of {}", member.rank, size);
    if (by_rank[member.rank] != nullptr) return fmt::format("rank {} was assigned twice", member.rank);
    by_rank[member.rank] = &member;
  }
  for (const Membership& member : members) {
    std::string fault = has_tree ? FaultOfTree(member, by_rank) : std::string();
    if (fault.empty()) fault = FaultOfLinks(member, size);
    if (!fault.empty()) return fault;
  }
  return {};
}

}  // namespace warren::bench
