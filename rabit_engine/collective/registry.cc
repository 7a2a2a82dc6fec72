#include "rabit_engine/collective/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/collective/halving_doubling.h"
#include "rabit_engine/collective/hierarchical.h"
#include "rabit_engine/collective/hierarchical_subtrees.h"
#include "rabit_engine/collective/linear.h"
#include "rabit_engine/collective/pairwise.h"
#include "rabit_engine/collective/recursive_doubling.h"
#include "rabit_engine/collective/ring.h"
#include "rabit_engine/collective/shared_memory.h"
#include "rabit_engine/collective/tree.h"

namespace warren::collective {
namespace {

// A row's position determines the algorithm's id, which ranks compare: append new rows at the end.
constexpr Algorithm kBuiltIn[] = {
    {.name = "tree",
     .allreduce = AllreduceTree,
     .reduce = ReduceTree,
     .broadcast = BroadcastTree,
     .barrier = BarrierTree},
    {.name = "recursive_doubling", .allreduce = AllreduceRecursiveDoubling},
    {.name = "halving_doubling", .allreduce = AllreduceHalvingDoubling},
    {.name = "pairwise",
     .combines_at_once = true,
     .allreduce = AllreducePairwise,
     .reduce_scatter = ReduceScatterPairwise,
     .allgather = AllgatherPairwise,
     .all_to_all = AllToAllPairwise},
    {.name = "ring",
     .allreduce = AllreduceRing,
     .reduce_scatter = ReduceScatterRing,
     .allgather = AllgatherRing,
     .broadcast = BroadcastRing},
    {.name = "bruck", .allgather = AllgatherBruck},
    {.name = "dissemination", .barrier = BarrierDissemination},
    {.name = "shared_memory",
     .needs = kOneHost | kFits,
     .combines_at_once = true,
     .allreduce = AllreduceSharedMemory,
     .allreduce_into = AllreduceIntoSharedMemory,
     .reduce = ReduceSharedMemory,
     .reduce_scatter = ReduceScatterSharedMemory,
     .allgather = AllgatherSharedMemory,
     .broadcast = BroadcastSharedMemory,
     .barrier = BarrierSharedMemory,
     .all_to_all = AllToAllSharedMemory},
    {.name = "hierarchical",
     .needs = kLevels | kFits | kMayReduce,
     .allreduce = AllreduceHierarchical,
     .reduce = ReduceHierarchical,
     .broadcast = BroadcastHierarchical,
     .barrier = BarrierHierarchical},
    {.name = "hierarchical_subtrees",
     .needs = kLevels | kFits | kConsecutive,
     .allreduce = AllreduceHierarchicalSubtrees},
    {.name = "linear", .gather = GatherLinear, .scatter = ScatterLinear},
};

std::vector<const Algorithm*>& All() {
  // The list is never destroyed, because another thread may end the process during a call.
  static auto& all = *[] {
    auto* rows = new std::vector<const Algorithm*>;
    for (const Algorithm& algorithm : kBuiltIn) rows->push_back(&algorithm);
    return rows;
  }();
  return all;
}

}  // namespace

bool Algorithm::Serves(Collective collective) const {
  switch (collective) {
    case Collective::kAllreduce:
      return allreduce != nullptr;
    case Collective::kBroadcast:
      return broadcast != nullptr;
    case Collective::kAllgather:
      return allgather != nullptr;
    case Collective::kReduceScatter:
      return reduce_scatter != nullptr;
    case Collective::kReduce:
      return reduce != nullptr;
    case Collective::kBarrier:
      return barrier != nullptr;
    case Collective::kGather:
      return gather != nullptr;
    case Collective::kScatter:
      return scatter != nullptr;
    case Collective::kAllToAll:
      return all_to_all != nullptr;
    case Collective::kExchange:  // no algorithm serves these three: see native_communicator.cc
    case Collective::kSendReceive:
    case Collective::kSplit:
      return false;
  }
  return false;
}

std::span<const Algorithm* const> Algorithms() {
  return All();
}

const Algorithm* FindAlgorithm(std::string_view name) {
  const auto found = std::ranges::find(All(), name, &Algorithm::name);
  return found == All().end() ? nullptr : *found;
}

std::uint8_t IdOf(const Algorithm& algorithm) {
  // Almost every call uses a built-in algorithm, whose id follows from its position in the array.
  const std::less<> before;
  if (!before(&algorithm, std::begin(kBuiltIn)) && before(&algorithm, std::end(kBuiltIn))) {
    return static_cast<std::uint8_t>(&algorithm - std::begin(kBuiltIn) + 1);
  }
  const auto found = std::find(All().begin(), All().end(), &algorithm);
  return static_cast<std::uint8_t>(found - All().begin() + 1);
}

void Register(const Algorithm& algorithm) {
  if (FindAlgorithm(algorithm.name) != nullptr) {
    throw Misuse(fmt::format("there is an algorithm named '{}' already", algorithm.name));
  }
  if (std::ranges::none_of(kCollectives,
                           [&](Collective collective) { return algorithm.Serves(collective); })) {
    throw Misuse(fmt::format("the algorithm '{}' serves no collective", algorithm.name));
  }
  if (All().size() == std::numeric_limits<std::uint8_t>::max()) {
    throw Misuse(
        fmt::format("there are {} algorithms, and no id is left for '{}'", All().size(), algorithm.name));
  }
  All().push_back(&algorithm);
}

}  // namespace warren::collective
