#include "rabit_engine/collective/partial_sums.h"

#include <algorithm>
#include <cstring>

#include "rabit_engine/collective/levels.h"

namespace warren::collective {
namespace {

/// Returns an upper bound for the number of partial sums of any consecutive ranks. A range of ranks
/// decomposes into at most two runs of subtrees, each with at most one subtree per level of the order. Ranks
/// that wrap around form two ranges, of one run each.
std::size_t MaxSums(const Reduction& reduction, int world_size) {
  return reduction.order_matters() ? std::max(1, 2 * NumLevels(world_size)) : 1;
}

std::vector<Subtree> DecomposeCyclic(int first, int ranks, int world_size) {
  const int end = first + ranks;
  std::vector<Subtree> subtrees = Decompose(first, std::min(end, world_size), world_size);
  if (end > world_size) {
    const std::vector<Subtree> after_seam = Decompose(0, end - world_size, world_size);
    subtrees.insert(subtrees.end(), after_seam.begin(), after_seam.end());
  }
  return subtrees;
}

}  // namespace

PartialSums::PartialSums(const Reduction& reduction, int world_size, std::size_t max_count)
    : reduction_(&reduction),
      world_size_(world_size),
      slots_(MaxSums(reduction, world_size) * max_count * reduction.element_bytes()) {}

void PartialSums::Hold(int first, int ranks, std::size_t count) {
  count_ = count;
  value_bytes_ = count * reduction_->element_bytes();
  sums_.clear();
  if (ranks == 0) return;
  if (!reduction_->order_matters()) {
    sums_.push_back({{first, first + ranks}, SlotAt(0)});
    return;
  }
  for (const Subtree subtree : DecomposeCyclic(first, ranks, world_size_)) {
    sums_.push_back({subtree, SlotAt(sums_.size())});
  }
}

std::span<std::byte> PartialSums::values() const {
  return {slots_.data(), sums_.size() * value_bytes_};
}

std::vector<std::span<const std::byte>> PartialSums::ValuesOf(Range range) const {
  if (range.size() == count_) return {values()};
  const std::size_t element = reduction_->element_bytes();
  std::vector<std::span<const std::byte>> pieces;
  for (const Sum& sum : sums_) pieces.emplace_back(sum.value + range.begin * element, range.size() * element);
  return pieces;
}

void PartialSums::Keep(Range range) {
  if (range.size() == count_) return;
  const std::size_t skipped = range.begin * reduction_->element_bytes();
  count_ = range.size();
  value_bytes_ = count_ * reduction_->element_bytes();
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::byte* from = sums_[i].value + skipped;
    sums_[i].value = SlotAt(i);
    std::memmove(sums_[i].value, from, value_bytes_);
  }
}

void PartialSums::Absorb(Subtree ranks, const void* value) {
  if (!sums_.empty() && AreSiblings(sums_.back().ranks, ranks)) {
    Sum& left = sums_.back();
    reduction_->Combine(left.value, left.value, value, count_);
    left.ranks.end = ranks.end;
  } else {
    sums_.push_back({ranks, SlotAt(sums_.size())});
    if (value_bytes_ > 0) std::memcpy(sums_.back().value, value, value_bytes_);
  }
  CombineSiblingsAtEnd(sums_);
}

void PartialSums::Absorb(const PartialSums& others) {
  for (const Sum& sum : others.sums_) Absorb(sum.ranks, sum.value);
}

void PartialSums::Total(void* out) {
  const auto before = [](const Sum& a, const Sum& b) { return a.ranks.begin < b.ranks.begin; };
  std::rotate(sums_.begin(), std::min_element(sums_.begin(), sums_.end(), before), sums_.end());
  std::vector<Sum> total;
  for (const Sum& sum : sums_) {
    total.push_back(sum);
    CombineSiblingsAtEnd(total);
  }
  if (value_bytes_ > 0) std::memcpy(out, total.front().value, value_bytes_);
  sums_.clear();
}

bool PartialSums::AreSiblings(Subtree left, Subtree right) const {
  if (!reduction_->order_matters()) return true;
  return left.end == right.begin && IsSubtree(left.begin, right.end, world_size_);
}

void PartialSums::CombineSiblingsAtEnd(std::vector<Sum>& sums) const {
  while (sums.size() >= 2) {
    Sum& left = sums[sums.size() - 2];
    const Sum& right = sums.back();
    if (!AreSiblings(left.ranks, right.ranks)) return;
    reduction_->Combine(left.value, left.value, right.value, count_);
    left.ranks.end = right.ranks.end;
    sums.pop_back();
  }
}

}  // namespace warren::collective
