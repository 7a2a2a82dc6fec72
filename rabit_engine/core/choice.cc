#include "rabit_engine/core/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "rabit_engine/core/error.h"

namespace warren {
namespace {

constexpr std::size_t kKi = 1024;
constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();
constexpr int kAnyRanks = std::numeric_limits<int>::max();
/// Direct links between all: so many sockets a rank, no more.
constexpr int kDirectRanks = 64;

enum Need : unsigned {
  kNothing = 0,
  kOneHost = 1U << 0,
  kLevels = 1U << 1,      ///< several hosts, some with several ranks
  kFits = 1U << 2,        ///< elements fit the stages in shared memory
  kMayReduce = 1U << 3,   ///< hosts may reduce first
  kPowerOfTwo = 1U << 4,  ///< ranks
  kAnyOrder = 1U << 5,    ///< the order of the reduction does not matter
  kCrowded = 1U << 6,     ///< cores are what is scarce: few messages count more than few steps
};

struct Row {
  Collective collective;
  Algorithm algorithm;
  unsigned needs;
  std::size_t max_bytes;
  int max_ranks;
};

// Read from the top; the first row that fits is taken. The last row of each collective fits always. Where the
// numbers come from: docs/engine.md, "How fast".
constexpr Row kTable[] = {
    {Collective::kAllreduce, Algorithm::kSharedMemory, kOneHost | kFits, kAnySize, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kHierarchical, kLevels | kFits | kMayReduce, kAnySize, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kTree, kCrowded, 128 * kKi, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kRecursiveDoubling, kPowerOfTwo, 256 * kKi, 2},
    {Collective::kAllreduce, Algorithm::kRecursiveDoubling, kPowerOfTwo, 64 * kKi, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kRecursiveDoubling, kNothing, 32 * kKi, kDirectRanks},
    {Collective::kAllreduce, Algorithm::kTree, kNothing, 32 * kKi, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kHalvingDoubling, kPowerOfTwo, kAnySize, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kPairwise, kNothing, kAnySize, kDirectRanks},
    {Collective::kAllreduce, Algorithm::kHalvingDoubling, kNothing, 1024 * kKi, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kRing, kAnyOrder, kAnySize, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kHalvingDoubling, kNothing, kAnySize, kAnyRanks},

    {Collective::kReduce, Algorithm::kSharedMemory, kOneHost | kFits, kAnySize, kAnyRanks},
    {Collective::kReduce, Algorithm::kHierarchical, kLevels | kFits | kMayReduce, kAnySize, kAnyRanks},
    {Collective::kReduce, Algorithm::kTree, kNothing, kAnySize, kAnyRanks},

    {Collective::kReduceScatter, Algorithm::kSharedMemory, kOneHost | kFits, kAnySize, kAnyRanks},
    {Collective::kReduceScatter, Algorithm::kPairwise, kNothing, kAnySize, kDirectRanks},
    {Collective::kReduceScatter, Algorithm::kRing, kNothing, kAnySize, kAnyRanks},

    {Collective::kBroadcast, Algorithm::kSharedMemory, kOneHost, kAnySize, kAnyRanks},
    {Collective::kBroadcast, Algorithm::kHierarchical, kLevels, kAnySize, kAnyRanks},
    {Collective::kBroadcast, Algorithm::kTree, kNothing, kAnySize, kAnyRanks},

    {Collective::kAllgather, Algorithm::kSharedMemory, kOneHost, kAnySize, kAnyRanks},
    {Collective::kAllgather, Algorithm::kBruck, kNothing, 32 * kKi, kAnyRanks},
    {Collective::kAllgather, Algorithm::kPairwise, kNothing, kAnySize, kDirectRanks},
    {Collective::kAllgather, Algorithm::kRing, kNothing, kAnySize, kAnyRanks},

    {Collective::kBarrier, Algorithm::kSharedMemory, kOneHost, kAnySize, kAnyRanks},
    {Collective::kBarrier, Algorithm::kHierarchical, kLevels, kAnySize, kAnyRanks},
    {Collective::kBarrier, Algorithm::kTree, kCrowded, kAnySize, kAnyRanks},
    {Collective::kBarrier, Algorithm::kDissemination, kNothing, kAnySize, kAnyRanks},

    {Collective::kExchange, Algorithm::kPairwise, kNothing, kAnySize, kAnyRanks},
};

/// Beside the table: what can be asked for though it is never the best.
constexpr Row kOnlyByForce[] = {
    {Collective::kAllreduce, Algorithm::kTree, kNothing, kAnySize, kAnyRanks},
    {Collective::kAllreduce, Algorithm::kRing, kNothing, kAnySize, kAnyRanks},
    {Collective::kBroadcast, Algorithm::kRing, kNothing, kAnySize, kAnyRanks},
    {Collective::kBarrier, Algorithm::kTree, kNothing, kAnySize, kAnyRanks},
};

constexpr Algorithm kAlgorithms[] = {
    Algorithm::kTree,
    Algorithm::kRecursiveDoubling,
    Algorithm::kHalvingDoubling,
    Algorithm::kPairwise,
    Algorithm::kRing,
    Algorithm::kBruck,
    Algorithm::kDissemination,
    Algorithm::kSharedMemory,
    Algorithm::kHierarchical,
};
constexpr Collective kCollectives[] = {
    Collective::kAllreduce, Collective::kBroadcast, Collective::kAllgather, Collective::kReduceScatter,
    Collective::kReduce,    Collective::kBarrier,   Collective::kExchange,
};

unsigned Unmet(const Row& row, const Situation& situation) {
  unsigned met = 0;
  if (situation.one_host) met |= kOneHost;
  if (situation.levels) met |= kLevels;
  if (situation.fits) met |= kFits;
  if (situation.levels_may_reduce || !situation.order_matters) met |= kMayReduce;
  if (std::has_single_bit(static_cast<unsigned>(situation.ranks))) met |= kPowerOfTwo;
  if (!situation.order_matters) met |= kAnyOrder;
  if (situation.crowded) met |= kCrowded;
  return row.needs & ~met;
}

/// An algorithm may be forced beyond the sizes and numbers it is best for, but not where it cannot work.
constexpr unsigned kCannotBeForced = kOneHost | kLevels | kFits | kMayReduce;

std::string Explain(unsigned unmet) {
  if ((unmet & kOneHost) != 0) return "not all ranks share the memory of one host";
  if ((unmet & kLevels) != 0) return "it needs several hosts, some with several ranks that share memory";
  if ((unmet & kFits) != 0) return "the elements are too large for the stages in shared memory";
  return "the hosts' ranks are not such that reducing inside hosts first keeps the order of the ranks "
         "(RABIT_REPRODUCIBLE=0 allows it)";
}

template <typename Visit>
bool AnyRow(Collective collective, Visit visit) {
  const auto matches = [&](const Row& row) { return row.collective == collective && visit(row); };
  return std::any_of(std::begin(kTable), std::end(kTable), matches) ||
         std::any_of(std::begin(kOnlyByForce), std::end(kOnlyByForce), matches);
}

bool Has(Collective collective, Algorithm algorithm) {
  return AnyRow(collective, [=](const Row& row) { return row.algorithm == algorithm; });
}

template <typename Value, std::size_t count>
Value Parse(std::string_view word, std::string_view text, const Value (&values)[count]) {
  std::string known;
  for (const Value value : values) {
    if (Name(value) == word) return value;
    known += known.empty() ? "" : ", ";
    known += Name(value);
  }
  throw Misuse(fmt::format("RABIT_ALGORITHM={}: '{}' is not known; expected one of {}", text, word, known));
}

}  // namespace

std::string_view Name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kRecursiveDoubling:
      return "recursive_doubling";
    case Algorithm::kHalvingDoubling:
      return "halving_doubling";
    case Algorithm::kPairwise:
      return "pairwise";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kBruck:
      return "bruck";
    case Algorithm::kDissemination:
      return "dissemination";
    case Algorithm::kSharedMemory:
      return "shared_memory";
    case Algorithm::kHierarchical:
      return "hierarchical";
  }
  return "unknown";
}

ForcedAlgorithms::ForcedAlgorithms(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      const Algorithm algorithm = Parse(item, text, kAlgorithms);
      for (const Collective collective : kCollectives) {
        if (Has(collective, algorithm)) by_collective_[collective] = algorithm;
      }
      continue;
    }
    const Collective collective = Parse(item.substr(0, equals), text, kCollectives);
    const Algorithm algorithm = Parse(item.substr(equals + 1), text, kAlgorithms);
    if (!Has(collective, algorithm)) {
      throw Misuse(
          fmt::format("RABIT_ALGORITHM={}: there is no {} by {}", text, Name(collective), Name(algorithm)));
    }
    by_collective_[collective] = algorithm;
  }
}

bool ForcedAlgorithms::Find(Collective collective, Algorithm& algorithm) const {
  const auto found = by_collective_.find(collective);
  if (found == by_collective_.end()) return false;
  algorithm = found->second;
  return true;
}

Algorithm Choose(const Situation& situation, const ForcedAlgorithms& forced) {
  Algorithm wish{};
  if (forced.Find(situation.collective, wish)) {
    unsigned unmet = kNothing;
    const bool works = AnyRow(situation.collective, [&](const Row& row) {
      if (row.algorithm != wish) return false;
      unmet = Unmet(row, situation) & kCannotBeForced;
      return unmet == 0;
    });
    if (works) return wish;
    throw Misuse(fmt::format("RABIT_ALGORITHM asks for {} by {}, which cannot be here: {}",
                             Name(situation.collective), Name(wish), Explain(unmet)));
  }
  for (const Row& row : kTable) {
    if (row.collective == situation.collective && situation.bytes <= row.max_bytes &&
        situation.ranks <= row.max_ranks && Unmet(row, situation) == 0) {
      return row.algorithm;
    }
  }
  throw EngineError(fmt::format("no row of the choice table fits {}", Name(situation.collective)));
}

}  // namespace warren
