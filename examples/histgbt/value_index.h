// Where a value stands among a feature's sorted ones: asked of every value of the data twice.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace warren::histgbt {

/// How many of a sorted list are not greater than `value`. At most 32 steps without a branch on the value.
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

/// A sorted list for each feature, with a grid of equal steps over it, which says where to begin: hardly
/// anything is left to search then, and nowhere more than without. The steps are equal in the values or,
/// where that divides them better, in the floats between (about their logarithms): columns may be even or
/// skewed.
class ValueIndex {
 public:
  /// Of the next feature. Ascending finite numbers; they have to live as long.
  void Add(std::span<const float> sorted);

  /// The same as the function, for a finite value.
  std::uint32_t CountUpTo(std::size_t feature, float value) const {
    const Feature& own = features_[feature];
    if (own.steps == 0) return histgbt::CountUpTo(own.sorted, value);
    const std::uint32_t* const starts = starts_.data() + own.starts + Step(own, value);
    return starts[0] + histgbt::CountUpTo(own.sorted.subspan(starts[0], starts[1] - starts[0]), value);
  }

 private:
  struct Feature {
    std::span<const float> sorted;
    std::size_t starts = 0;   ///< where its grid begins in starts_: for each step, and one more
    std::uint32_t steps = 0;  ///< 0: no grid
    bool by_floats = false;
    float least = 0;
    float by = 0;
  };

  /// How many floats there are from one to the other, about; negative downwards.
  static float FloatsBetween(float from, float to) {
    return static_cast<float>(Rank(to)) - static_cast<float>(Rank(from));
  }
  /// A float's place among all floats.
  static std::int32_t Rank(float value) {
    const auto bits = std::bit_cast<std::int32_t>(value);
    return bits < 0 ? std::numeric_limits<std::int32_t>::min() - bits : bits;
  }
  /// Never falls when the value rises, rounding and overflow included: what is in an earlier step is less.
  static std::uint32_t Step(const Feature& own, float value) {
    const float distance = own.by_floats ? FloatsBetween(own.least, value) : value - own.least;
    const float step = distance * own.by;
    if (!(step > 0)) return 0;
    return step < static_cast<float>(own.steps) ? static_cast<std::uint32_t>(step) : own.steps - 1;
  }

  void FillStarts(Feature& feature);

  std::vector<Feature> features_;
  std::vector<std::uint32_t> starts_;  ///< how many of the sorted values are in earlier steps
};

}  // namespace warren::histgbt
