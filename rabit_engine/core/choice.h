// Which algorithm serves which call: one table (choice.cc), read from the top, and RABIT_ALGORITHM over it.
// Pure: the same on every rank, because all of them know the same facts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "rabit_engine/collective/peer_group.h"

namespace warren {

/// The value is part of CallTag.
enum class Algorithm : std::uint8_t {
  kTree = 1,
  kRecursiveDoubling = 2,
  kHalvingDoubling = 3,
  kPairwise = 4,
  kRing = 5,
  kBruck = 6,
  kDissemination = 7,
  kSharedMemory = 8,
  kHierarchical = 9,
};
std::string_view Name(Algorithm algorithm);

/// What the choice depends on.
struct Situation {
  Collective collective{};
  std::size_t bytes = 0;  ///< of the whole vector
  int ranks = 1;          ///< that take part
  bool one_host = false;  ///< all ranks share memory
  bool levels = false;    ///< several hosts, some with several ranks
  /// Elements are small enough for the stages in shared memory.
  bool fits = true;
  /// Reducing inside the hosts first is allowed: it keeps the order of the ranks, or the order does not
  /// matter, or the user said so (RABIT_REPRODUCIBLE=0).
  bool levels_may_reduce = true;
  bool order_matters = false;
  bool crowded = false;  ///< some machine has more than two of the ranks for each of its cores
};

/// The user's wishes: per collective, the algorithm to take.
class ForcedAlgorithms {
 public:
  ForcedAlgorithms() = default;
  /// "ring": for every collective that has it. "allreduce=ring,broadcast=tree": for these. Throws Misuse.
  explicit ForcedAlgorithms(const std::string& text);
  /// Sets `algorithm` when there is a wish.
  bool Find(Collective collective, Algorithm& algorithm) const;

 private:
  std::map<Collective, Algorithm> by_collective_;
};

/// The first row of the table that fits. Forced algorithms that cannot serve the situation throw Misuse.
Algorithm Choose(const Situation& situation, const ForcedAlgorithms& forced);

}  // namespace warren
