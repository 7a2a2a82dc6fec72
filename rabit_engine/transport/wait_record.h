// What a rank says of its waiting, so that ranks which wait for each other find out
// (engine/deadlock_search.h). Values; sent as they lie in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace warren {

enum class WaitKind : std::uint32_t {
  kMemory = 0,   ///< for something that the other does in shared memory
  kReceive = 1,  ///< for bytes of the other
  kSend = 2,     ///< until the other reads
  kLink = 3,     ///< until the other makes the link
};

/// Without which the rank does not go on.
struct WaitEdge {
  std::int32_t on = -1;  ///< for this rank
  WaitKind kind = WaitKind::kMemory;
  std::uint64_t received = 0;  ///< bytes that have come of it over TCP
  friend bool operator==(const WaitEdge&, const WaitEdge&) = default;
};

struct WaitRecord {
  static constexpr std::size_t kMostEdges = 4;

  std::int64_t since = 0;    ///< ns of the host's clock; another for each wait of the rank
  std::int64_t renewed = 0;  ///< nothing had come when the rank looked after that; 0: it does not wait
  std::uint64_t num_edges = 0;
  std::array<WaitEdge, kMostEdges> edges{};
};
static_assert(sizeof(WaitRecord) == 88);

/// Goes from rank to rank along the edges, to come back to its origin if that waits for itself.
struct WaitProbe {
  static constexpr std::size_t kPathLength = 5;

  std::int32_t origin = -1;
  std::int32_t waiter = -1;  ///< who waits for the rank that gets this
  WaitEdge edge;             ///< in this way
  std::uint32_t attempt = 0;
  std::uint32_t hops = 0;    ///< ranks on the way, the origin among them
  std::uint64_t digest = 0;  ///< of all waits on the way
  std::uint32_t is_new = 0;  ///< 1: the origin has just begun to wait, or was asked by one that has
  std::array<std::int32_t, kPathLength> path{};  ///< the first of them
};
static_assert(sizeof(WaitProbe) == 64);

}  // namespace warren
