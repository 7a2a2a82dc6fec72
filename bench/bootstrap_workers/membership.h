// What one worker ended up with when its links stood, and the check that all of them fit together. Plain
// data: it lies in memory shared by the processes of the simulation.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace warren::bench {

/// More than any worker has: three tree and two ring neighbours.
inline constexpr std::size_t kMaxPeers = 8;

struct PeerList {
  std::int32_t count = 0;
  std::array<std::int32_t, kMaxPeers> ranks{};

  /// Throws std::length_error when it is full.
  void Add(std::int32_t rank);
  bool Contains(std::int32_t rank) const;
  const std::int32_t* begin() const { return ranks.data(); }
  const std::int32_t* end() const { return ranks.data() + count; }
};

/// How far a worker has come.
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
  PeerList tree;   ///< as the tracker said
  PeerList links;  ///< as the peers at the other ends said
};

std::string_view StageName(Stage stage);

/// "998 waiting for a rank, 2 connecting to the tracker": where a job stands that does not come to an end.
std::string DescribeStages(std::span<const Membership> members);

/// Empty when ranks 0 to N-1 are there once each, the tree is one tree with rank 0 as its root, the ring is
/// 0, 1, 2, ... and every worker has exactly the links that tree and ring ask for; else the first thing
/// wrong. Without a tree (`has_tree`) there is the ring only.
std::string FindFault(std::span<const Membership> members, bool has_tree);

}  // namespace warren::bench
