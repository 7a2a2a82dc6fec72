#include "rabit_engine/collective/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/collective/levels.h"
#include "rabit_engine/collective/registry.h"

namespace warren::collective {
namespace {

constexpr std::size_t kKi = 1024;
constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();
constexpr int kAnyRanks = std::numeric_limits<int>::max();
/// The number of ranks up to which the table chooses algorithms that link every rank directly to all others,
/// except for all-to-all. This limits the sockets per rank.
constexpr int kDirectRanks = 64;

/// Conditions under which the algorithm of a row is the best choice. Conditions without which an algorithm
/// cannot work are its needs (Need).
enum Condition : unsigned {
  kAlways = 0,
  kPowerOfTwo = 1U << 0,       ///< the number of ranks is a power of two
  kCrowded = 1U << 1,          ///< cores are scarce, so few messages matter more than few steps
  kRounds = 1U << 2,           ///< results are rounded, so most algorithms send twice the bytes
  kFewToServe = 1U << 3,       ///< each member of a small last node serves at most kMostServed members
  kFewHostsToServe = 1U << 4,  ///< like kFewToServe, with hosts as the members
};

/// In recursive doubling and halving-doubling, a member of a small last node serves several members, with one
/// message for each (recursive_doubling.h). If it serves more members than this, a tree is faster for short
/// vectors.
constexpr int kMostServed = 16;

struct Row {
  Collective collective;
  std::string_view algorithm;
  unsigned conditions;
  std::size_t max_bytes;
  int max_ranks;
};

// The table is read from the top; the first row that applies is taken. The last row of each collective always
// applies. For the origin of the numbers see docs/explanation/engine.md, "The choice". Numbers marked as
// simulated were not measured: they come from a simulation of hosts connected by a network with full
// bisection bandwidth (bench/loggp, bench/results/simulation.md).
constexpr Row kTable[] = {
    {Collective::kAllreduce, "shared_memory", kAlways, kAnySize, kAnyRanks},
    {Collective::kAllreduce, "hierarchical", kAlways, kAnySize, kAnyRanks},
    // Simulated: this row, for hosts with 3 and 6 ranks.
    {Collective::kAllreduce, "hierarchical_subtrees", kFewHostsToServe, kAnySize, kAnyRanks},
    {Collective::kAllreduce, "tree", kRounds | kCrowded, 32 * kKi, kAnyRanks},
    {Collective::kAllreduce, "recursive_doubling", kRounds, 16 * kKi, kDirectRanks},
    {Collective::kAllreduce, "pairwise", kRounds, kAnySize, kDirectRanks},
    {Collective::kAllreduce, "tree", kCrowded, 128 * kKi, kAnyRanks},
    {Collective::kAllreduce, "recursive_doubling", kPowerOfTwo, 256 * kKi, 2},
    {Collective::kAllreduce, "recursive_doubling", kPowerOfTwo, 64 * kKi, 8},
    // Simulated: these two rows for 16 ranks and more.
    {Collective::kAllreduce, "recursive_doubling", kPowerOfTwo, 32 * kKi, kAnyRanks},
    {Collective::kAllreduce, "halving_doubling", kPowerOfTwo, kAnySize, kAnyRanks},
    {Collective::kAllreduce, "recursive_doubling", kFewToServe, 32 * kKi, kDirectRanks},
    {Collective::kAllreduce, "pairwise", kAlways, kAnySize, 16},
    // Simulated: these rows for more than 16 ranks, not a power of two.
    {Collective::kAllreduce, "recursive_doubling", kFewToServe, 16 * kKi, kAnyRanks},
    {Collective::kAllreduce, "halving_doubling", kFewToServe, kAnySize, kAnyRanks},
    {Collective::kAllreduce, "tree", kAlways, 32 * kKi, kAnyRanks},
    {Collective::kAllreduce, "halving_doubling", kAlways, kAnySize, kAnyRanks},

    {Collective::kReduce, "shared_memory", kAlways, kAnySize, kAnyRanks},
    {Collective::kReduce, "hierarchical", kAlways, kAnySize, kAnyRanks},
    {Collective::kReduce, "tree", kAlways, kAnySize, kAnyRanks},

    {Collective::kReduceScatter, "shared_memory", kAlways, kAnySize, kAnyRanks},
    {Collective::kReduceScatter, "pairwise", kAlways, kAnySize, kDirectRanks},
    {Collective::kReduceScatter, "ring", kAlways, kAnySize, kAnyRanks},

    {Collective::kBroadcast, "shared_memory", kAlways, kAnySize, kAnyRanks},
    {Collective::kBroadcast, "hierarchical", kAlways, kAnySize, kAnyRanks},
    {Collective::kBroadcast, "tree", kAlways, kAnySize, kAnyRanks},

    {Collective::kAllgather, "shared_memory", kAlways, kAnySize, kAnyRanks},
    {Collective::kAllgather, "bruck", kCrowded, 128 * kKi, kAnyRanks},
    {Collective::kAllgather, "pairwise", kCrowded, 256 * kKi, kDirectRanks},
    {Collective::kAllgather, "ring", kCrowded, kAnySize, kAnyRanks},
    {Collective::kAllgather, "bruck", kAlways, 32 * kKi, kAnyRanks},
    {Collective::kAllgather, "pairwise", kAlways, kAnySize, kDirectRanks},
    {Collective::kAllgather, "ring", kAlways, kAnySize, kAnyRanks},

    {Collective::kBarrier, "shared_memory", kAlways, kAnySize, kAnyRanks},
    {Collective::kBarrier, "hierarchical", kAlways, kAnySize, kAnyRanks},
    {Collective::kBarrier, "tree", kCrowded, kAnySize, kAnyRanks},
    {Collective::kBarrier, "dissemination", kAlways, kAnySize, kAnyRanks},

    // The choice for these collectives cannot depend on sizes: the length of a slice is known only to the two
    // ranks concerned.
    {Collective::kGather, "linear", kAlways, kAnySize, kAnyRanks},
    {Collective::kScatter, "linear", kAlways, kAnySize, kAnyRanks},
    {Collective::kAllToAll, "shared_memory", kAlways, kAnySize, kAnyRanks},
    {Collective::kAllToAll, "pairwise", kAlways, kAnySize, kAnyRanks},
};

/// A row of the table with its algorithm looked up.
struct ResolvedRow {
  const Row* row;
  const Algorithm* algorithm;
};

std::vector<ResolvedRow> Resolve() {
  std::vector<ResolvedRow> rows;
  for (const Row& row : kTable) {
    const Algorithm* algorithm = FindAlgorithm(row.algorithm);
    if (algorithm == nullptr || !algorithm->Serves(row.collective)) {
      throw EngineError(fmt::format("the choice table names {} by {}, which the registry does not have",
                                    Name(row.collective), row.algorithm));
    }
    rows.push_back({&row, algorithm});
  }
  return rows;
}

unsigned UnmetNeeds(const Algorithm& algorithm, const Situation& situation) {
  unsigned met = 0;
  if (situation.one_host) met |= kOneHost;
  if (situation.levels) met |= kLevels;
  if (situation.fits) met |= kFits;
  if (situation.levels_may_reduce || !situation.order_matters) met |= kMayReduce;
  if (situation.consecutive) met |= kConsecutive;
  return algorithm.needs & ~met;
}

/// Returns the largest number of members of a left sibling that one member of the right sibling serves in
/// recursive doubling. In halving-doubling, the number is less than twice as large.
int MostServed(int ranks) {
  int most = 1;
  for (int level = 0; level < NumLevels(ranks); ++level) {
    const auto [left, right] = SiblingsAbove(ranks - 1, level, ranks);
    if (Size(right) > 0) most = std::max(most, (Size(left) + Size(right) - 1) / Size(right));
  }
  return most;
}

bool ConditionsHold(const Row& row, const Situation& situation) {
  unsigned hold = 0;
  if (std::has_single_bit(static_cast<unsigned>(situation.ranks))) hold |= kPowerOfTwo;
  if (situation.crowded) hold |= kCrowded;
  if (situation.rounds) hold |= kRounds;
  if ((row.conditions & kFewToServe) != 0 && MostServed(situation.ranks) <= kMostServed) hold |= kFewToServe;
  if ((row.conditions & kFewHostsToServe) != 0 && MostServed(situation.hosts) <= kMostServed) {
    hold |= kFewHostsToServe;
  }
  return (row.conditions & ~hold) == 0 && situation.bytes <= row.max_bytes &&
         situation.ranks <= row.max_ranks;
}

std::string Explain(unsigned unmet) {
  if ((unmet & kOneHost) != 0) return "not all ranks share the memory of one host";
  if ((unmet & kLevels) != 0) return "it needs several hosts, some with several ranks that share memory";
  if ((unmet & kFits) != 0) return "the elements are too large for the stages in shared memory";
  if ((unmet & kConsecutive) != 0) return "the ranks of some host do not follow each other";
  return "reducing inside hosts first would not keep the order of the ranks (WARREN_REPRODUCIBLE=0 allows it)";
}

/// Joins the names of `values`, e.g. "tree, ring".
template <typename Values, typename NameOf>
std::string List(const Values& values, NameOf name_of) {
  std::string list;
  for (const auto& value : values) list += fmt::format("{}{}", list.empty() ? "" : ", ", name_of(value));
  return list;
}

[[noreturn]] void ThrowUnknown(std::string_view word, std::string_view given, const std::string& known) {
  throw Misuse(fmt::format("{}: '{}' is not known; expected one of {}", given, word, known));
}

const Algorithm& ParseAlgorithm(std::string_view word, std::string_view given) {
  const Algorithm* found = FindAlgorithm(word);
  if (found == nullptr) {
    ThrowUnknown(word, given, List(Algorithms(), [](const Algorithm* algorithm) { return algorithm->name; }));
  }
  return *found;
}

Collective ParseCollective(std::string_view word, std::string_view given) {
  for (const Collective collective : kCollectives) {
    if (Name(collective) == word) return collective;
  }
  ThrowUnknown(word, given, List(kCollectives, [](Collective collective) { return Name(collective); }));
}

}  // namespace

ForcedAlgorithms::ForcedAlgorithms(const std::string& text, std::string name) : name_(std::move(name)) {
  const std::string given = fmt::format("{}={}", name_, text);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      const Algorithm& algorithm = ParseAlgorithm(item, given);
      for (const Collective collective : kCollectives) {
        if (algorithm.Serves(collective)) by_collective_[collective] = &algorithm;
      }
      continue;
    }
    const Collective collective = ParseCollective(item.substr(0, equals), given);
    const Algorithm& algorithm = ParseAlgorithm(item.substr(equals + 1), given);
    if (!algorithm.Serves(collective)) {
      throw Misuse(fmt::format("{}: there is no {} by {}", given, Name(collective), algorithm.name));
    }
    by_collective_[collective] = &algorithm;
  }
}

const Algorithm* ForcedAlgorithms::Find(Collective collective) const {
  const auto found = by_collective_.find(collective);
  return found == by_collective_.end() ? nullptr : found->second;
}

const Algorithm& Choose(const Situation& situation, const ForcedAlgorithms& forced) {
  if (const Algorithm* wish = forced.Find(situation.collective)) {
    // A requested algorithm may be slower than the table's choice, but it must be able to work.
    const unsigned unmet = UnmetNeeds(*wish, situation);
    if (unmet == kNothing) return *wish;
    throw Misuse(fmt::format("{}: {} cannot use {} here: {}", forced.name(), Name(situation.collective),
                             wish->name, Explain(unmet)));
  }
  // The table is never destroyed, because another thread may end the process during a call.
  static const auto& table = *new std::vector<ResolvedRow>(Resolve());
  for (const ResolvedRow& row : table) {
    if (row.row->collective == situation.collective && ConditionsHold(*row.row, situation) &&
        UnmetNeeds(*row.algorithm, situation) == kNothing) {
      return *row.algorithm;
    }
  }
  throw EngineError(fmt::format("no row of the choice table fits {}", Name(situation.collective)));
}

}  // namespace warren::collective
