// What can be combined of some ranks' values before the others' are known: partial sums of subtrees of the
// order of reduction (reduce/order.h). A rank, or a host of several, holds the partial sums of consecutive
// ranks; it receives them from its neighbour, absorbs its own, and passes them on. They are few: siblings are
// combined as soon as they meet, so that there is one for each maximal subtree of the ranks (Decompose in
// order.h), and just one where the order does not matter.
//
// Ranks follow each other cyclically: 0 comes after the last. Partial sums on both sides of that seam lie in
// the order of arrival until Total() has all of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rabit_engine/collective/scratch.h"
#include "rabit_engine/collective/slices.h"
#include "rabit_engine/reduce/order.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {

/// Not thread safe. The reduction must outlive it.
class PartialSums {
 public:
  /// Room for the partial sums of any consecutive ranks of `world_size`, each of up to `max_count` elements.
  PartialSums(const Reduction& reduction, int world_size, std::size_t max_count);

  /// Holds the partial sums of `ranks` ranks from `first` on, each of `count` elements, instead of what there
  /// was. Their values are undefined until they have been received into values(). `ranks` may be 0.
  void Hold(int first, int ranks, std::size_t count);

  /// The values of all partial sums, one after the other: what travels.
  std::span<std::byte> values() const;

  /// The values in a range of the elements, in as few pieces as they lie in: what travels of them.
  std::vector<std::span<const std::byte>> ValuesOf(Range range) const;

  /// Forgets all elements but these.
  void Keep(Range range);

  /// Adds the value of a subtree. Its ranks must follow those that were added last.
  void Absorb(Subtree ranks, const void* value);
  /// Adds others', of as many elements, whose ranks follow.
  void Absorb(const PartialSums& others);

  /// Writes the sum of all ranks, which must have been absorbed. Nothing is held afterwards.
  void Total(void* out);

 private:
  struct Sum {
    Subtree ranks;
    std::byte* value = nullptr;
  };

  std::byte* SlotAt(std::size_t index) const { return slots_.data() + index * value_bytes_; }
  bool AreSiblings(Subtree left, Subtree right) const;
  void CombineSiblingsAtEnd(std::vector<Sum>& sums) const;

  const Reduction* reduction_;
  int world_size_;
  Scratch slots_;
  std::size_t count_ = 0;
  std::size_t value_bytes_ = 0;
  std::vector<Sum> sums_;  // the i-th in slot i
};

}  // namespace warren::collective
