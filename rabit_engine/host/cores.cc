#include "rabit_engine/host/cores.h"

#include <algorithm>

namespace warren {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr int kCoresOfDigit = 4;
/// Core numbers are below this, as in cpu_set_t.
constexpr int kMostCores = 1024;

/// A matching of ranks with cores that grows by one rank at a time (Kuhn's algorithm, with augmenting paths).
class Matching {
 public:
  explicit Matching(std::span<const std::vector<int>> cores_of_ranks)
      : cores_of_ranks_(cores_of_ranks), rank_of_core_(kMostCores, -1) {}

  /// Finds a core for one more rank, moving other ranks to other cores if necessary. Returns false if that is
  /// impossible.
  bool Add(int rank) {
    seen_.assign(rank_of_core_.size(), false);
    return Place(rank);
  }

 private:
  bool Place(int rank) {
    const std::vector<int>& cores = cores_of_ranks_[rank];
    const auto free =
        std::find_if(cores.begin(), cores.end(), [this](int core) { return rank_of_core_[core] < 0; });
    if (free != cores.end()) {
      rank_of_core_[*free] = rank;
      return true;
    }
    return std::any_of(cores.begin(), cores.end(), [&](int core) {
      if (seen_[core]) return false;
      seen_[core] = true;
      if (!Place(rank_of_core_[core])) return false;
      rank_of_core_[core] = rank;
      return true;
    });
  }

  std::span<const std::vector<int>> cores_of_ranks_;
  std::vector<int> rank_of_core_;  ///< by core; -1 if the core is free
  std::vector<bool> seen_;
};

}  // namespace

std::string EncodeCores(std::span<const int> cores) {
  std::string text;
  for (const int core : cores) {
    const auto at = static_cast<std::size_t>(core / kCoresOfDigit);
    if (at >= text.size()) text.resize(at + 1, '0');
    text[at] = kDigits[kDigits.find(text[at]) | 1U << (core % kCoresOfDigit)];
  }
  return text;
}

std::vector<int> DecodeCores(std::string_view text) {
  std::vector<int> cores;
  text = text.substr(0, kMostCores / kCoresOfDigit);
  for (int core = 0; core < static_cast<int>(text.size()) * kCoresOfDigit; ++core) {
    const std::size_t digit = kDigits.find(text[core / kCoresOfDigit]);
    if (digit != std::string_view::npos && (digit >> (core % kCoresOfDigit) & 1) != 0) cores.push_back(core);
  }
  return cores;
}

bool EachHasACore(std::span<const std::vector<int>> cores_of_ranks) {
  Matching matching(cores_of_ranks);
  for (int rank = 0; rank < static_cast<int>(cores_of_ranks.size()); ++rank) {
    if (!matching.Add(rank)) return false;
  }
  return true;
}

}  // namespace warren
