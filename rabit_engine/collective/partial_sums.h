// Partial sums of subtrees of the order of reduction (reduce/order.h): the results of combining some ranks'
// values as far as possible before the other ranks' values are known. A rank, or a host with several ranks,
// holds the partial sums of consecutive ranks; it receives partial sums from a peer and combines them with
// its own. There are few partial sums: siblings are combined as soon as both are present, so that there is
// one for each maximal subtree of the ranks (Decompose in order.h), and only one if the order does not
// matter.
//
// "Consecutive" is meant cyclically: rank 0 follows the last rank. Partial sums on both sides of this wrap
// stay in the order of arrival until Total(), when those of all ranks are present.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rabit_engine/base/scratch.h"
#include "rabit_engine/collective/slices.h"
#include "rabit_engine/reduce/order.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {

/// Not thread-safe. The reduction must outlive this object.
class PartialSums {
 public:
  /// Allocates memory for the partial sums of any consecutive ranks of `world_size`, each of up to
  /// `max_count` elements.
  PartialSums(const Reduction& reduction, int world_size, std::size_t max_count);

  /// Replaces the contents with the partial sums of `ranks` ranks from `first` on, each of `count` elements.
  /// The values are undefined until they have been written to values(). `ranks` may be 0.
  void Hold(int first, int ranks, std::size_t count);

  /// The values of all partial sums, one after another, to be sent or to be received into.
  std::span<std::byte> values() const;

  /// Returns these elements of all partial sums: one piece if the range is the whole vector, otherwise one
  /// piece for each partial sum.
  std::vector<std::span<const std::byte>> ValuesOf(Range range) const;

  /// Drops the elements outside the range from all partial sums.
  void Keep(Range range);

  /// Adds the value of a subtree, whose ranks must follow the ranks added last.
  void Absorb(Subtree ranks, const void* value);
  /// Adds the partial sums of `others`, which must have the same number of elements, and whose ranks must
  /// follow the ranks added last.
  void Absorb(const PartialSums& others);

  /// Writes the sum over all ranks to `out`, and drops all partial sums. The values of all ranks must be
  /// present.
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
  std::vector<Sum> sums_;  // the value of the i-th is in slot i
};

}  // namespace warren::collective
