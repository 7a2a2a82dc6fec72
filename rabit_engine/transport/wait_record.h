// Records in which a rank publishes its waits, so that a cycle of ranks that wait for each other can be found
// (engine/deadlock_search.h). Plain values, sent in their memory layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace warren {

enum class WaitKind : std::uint32_t {
  kMemory = 0,   ///< waits for the peer to do something in shared memory
  kReceive = 1,  ///< waits for bytes from the peer
  kSend = 2,     ///< waits for the peer to read
  kLink = 3,     ///< waits for the peer to make the link
};

/// A peer that the rank waits for.
struct WaitEdge {
  std::int32_t on = -1;  ///< the awaited rank
  WaitKind kind = WaitKind::kMemory;
  std::uint64_t received = 0;  ///< bytes received from the awaited rank over TCP
  friend bool operator==(const WaitEdge&, const WaitEdge&) = default;
};

struct WaitRecord {
  static constexpr std::size_t kMostEdges = 4;

  std::int64_t since = 0;  ///< start of the wait, in ns on the host's clock; unique to each wait of the rank
  std::int64_t renewed = 0;  ///< a time after which the rank checked that nothing had arrived; 0: not waiting
  std::uint64_t num_edges = 0;
  std::array<WaitEdge, kMostEdges> edges{};
};
static_assert(sizeof(WaitRecord) == 88);

/// A message passed from rank to rank along the edges. If it returns to its origin, the edges form a cycle.
struct WaitProbe {
  static constexpr std::size_t kPathLength = 5;

  std::int32_t origin = -1;
  std::int32_t waiter = -1;  ///< the rank that waits for the receiver of this probe
  WaitEdge edge;             ///< the edge from `waiter` to that receiver
  std::uint32_t attempt = 0;
  std::uint32_t hops = 0;    ///< number of ranks on the path so far, including the origin
  std::uint64_t digest = 0;  ///< digest of all waits on the path
  /// 1 if this is the origin's first probe for its current wait, or replaces another rank's probe that the
  /// origin dropped.
  std::uint32_t is_new = 0;
  std::array<std::int32_t, kPathLength> path{};  ///< the first ranks on the path, the origin first
};
static_assert(sizeof(WaitProbe) == 64);

}  // namespace warren
