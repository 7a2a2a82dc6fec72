// Finds the position of a value among a feature's sorted values; called twice for every value of the training
// data.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace warren::histgbt {

/// Returns the number of values in a sorted list that are not greater than `value`, in at most 32 steps
/// without data-dependent branches.
inline std::uint32_t CountUpTo(std::span<const float> sorted, float value) {
  const float* base = sorted.data();
  std::size_t size = sorted.size();
  if (size == 0) return 0;
  while (size > 1) {
    const std::size_t half = size / 2;
    base += base[half - 1] <= value ? half : 0;
    size -= half;
  }
  return static_cast<std::uint32_t>(base - sorted.data()) + (*base <= value ? 1 : 0);
}

/// A sorted list for each feature, with a grid of equal steps that narrows the search to the values in one
/// step: usually very few, and never more than without a grid. The steps are equal in the values or, if that
/// divides them more evenly, in the number of floats between them (roughly their logarithms), which suits
/// skewed columns.
class ValueIndex {
 public:
  /// Adds the next feature. The values must be finite and ascending, and must outlive the index.
  void Add(std::span<const float> sorted);

  /// Like the free function, for the values of a feature; `value` must be finite.
  std::uint32_t CountUpTo(std::size_t feature, float value) const {
    const Feature& own = features_[feature];
    if (own.steps == 0) return histgbt::CountUpTo(own.sorted, value);
    const std::uint32_t* const starts = starts_.data() + own.starts + Step(own, value);
    return starts[0] + histgbt::CountUpTo(own.sorted.subspan(starts[0], starts[1] - starts[0]), value);
  }

 private:
  struct Feature {
    std::span<const float> sorted;
    std::size_t starts = 0;   ///< beginning of its grid in starts_: steps + 1 entries
    std::uint32_t steps = 0;  ///< 0: no grid
    bool by_floats = false;
    float least = 0;
    float by = 0;
  };

  /// The approximate number of floats between two numbers; negative if `to` is less than `from`.
  static float FloatsBetween(float from, float to) {
    return static_cast<float>(Rank(to)) - static_cast<float>(Rank(from));
  }
  /// A float's position among all floats; 0 for zero.
  static std::int32_t Rank(float value) {
    const auto bits = std::bit_cast<std::int32_t>(value);
    return bits < 0 ? std::numeric_limits<std::int32_t>::min() - bits : bits;
  }
  /// Returns the step of a value. Even with rounding and overflow, a greater value is never in an earlier
  /// step.
  static std::uint32_t Step(const Feature& own, float value) {
    const float distance = own.by_floats ? FloatsBetween(own.least, value) : value - own.least;
    const float step = distance * own.by;
    if (!(step > 0)) return 0;
    return step < static_cast<float>(own.steps) ? static_cast<std::uint32_t>(step) : own.steps - 1;
  }

  void FillStarts(Feature& feature);

  std::vector<Feature> features_;
  std::vector<std::uint32_t> starts_;  ///< for each step, the number of sorted values in earlier steps
};

}  // namespace warren::histgbt
