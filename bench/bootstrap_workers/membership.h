// The rank, neighbors and links of one worker, and a check of their consistency over all workers. Plain
// data, since it is stored in memory that the processes of the simulation share.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace warren::bench {

/// More peers than any worker has: three in the tree and two in the ring.
inline constexpr std::size_t kMaxPeers = 8;

struct PeerList {
  std::int32_t count = 0;
  std::array<std::int32_t, kMaxPeers> ranks{};

  /// Throws std::length_error if the list is full.
  void Add(std::int32_t rank);
  bool Contains(std::int32_t rank) const;
  const std::int32_t* begin() const { return ranks.data(); }
  const std::int32_t* end() const { return ranks.data() + count; }
};

/// The progress of a worker.
enum class Stage : std::int32_t {
  kIdle,
  kConnects,
  kGreets,
  kWaitsForRank,
  kWaitsForPlan,
  kMakesLinks,
  kAcceptsLinks,
  kLinked,
  kHasShutDown
};

struct Membership {
  Stage stage = Stage::kIdle;
  std::int32_t rank = -1;
  std::int32_t parent = -1;
  std::int32_t world_size = 0;
  std::int32_t ring_prev = -1;
  std::int32_t ring_next = -1;
  PeerList tree;   ///< as assigned by the tracker; empty for XGBoost 2.1 and later
  PeerList links;  ///< the peers with which links were made
};

std::string_view StageName(Stage stage);

/// The state of a job that does not finish: "998 waiting for a rank, 2 connecting to the tracker".
std::string DescribeStages(std::span<const Membership> members);

/// Returns the first fault, or an empty string if ranks 0 to N-1 exist once each, the tree is one tree with
/// rank 0 as its root, the ring is 0, 1, 2, ... and every worker has exactly the links of tree and ring. If
/// `has_tree` is false, the tree is not checked, and the links must be those of the ring.
std::string FindFault(std::span<const Membership> members, bool has_tree);

}  // namespace warren::bench
