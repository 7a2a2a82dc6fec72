// Reductions for testing the algorithms; input values for which a wrong order of operands changes the bits of
// the result, if the order matters; and expected results from the simplest possible code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/reduce/reduction.h"

namespace warren::testing {

using Bytes = std::vector<std::byte>;

/// A small, fast random number generator that returns the same numbers on every platform (Steele, Lea, Flood:
/// "Fast splittable pseudorandom number generators").
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()();
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }

 private:
  std::uint64_t state_;
};

Bytes RandomBytes(std::size_t bytes, std::uint64_t seed);

struct Sample {
  std::string name;
  Reduction reduction;
  /// Writes one element of the input of `rank`.
  void (*write)(std::byte* element, int rank, Random& random);

  Bytes Values(int rank, std::size_t count) const;
};

/// Float and double sums, a sum of 32-bit integers, a maximum of float16, and a function of 24-byte elements
/// that is neither commutative nor associative.
const std::vector<Sample>& Samples();

/// A custom reduction of elements that are larger than the chunks of any algorithm over links.
const Sample& HugeElements();

/// The expected result of an allreduce of these inputs, one per rank, computed recursively in the order of
/// rabit_engine/reduce/order.h.
Bytes Expected(const Reduction& reduction, std::span<const Bytes> inputs);

}  // namespace warren::testing
