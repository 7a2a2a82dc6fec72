#include "examples/histgbt/value_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace warren::histgbt {
namespace {

/// Lists with fewer than kFewest or more than kMost values are searched without a grid: a short list needs
/// none, and float arithmetic is too coarse for the steps of a much larger grid.
constexpr std::size_t kFewest = 8;
constexpr std::size_t kMost = std::size_t{1} << 22;

}  // namespace

void ValueIndex::Add(std::span<const float> sorted) {
  Feature feature;
  feature.sorted = sorted;
  if (sorted.size() >= kFewest && sorted.size() <= kMost) {
    feature.steps = static_cast<std::uint32_t>(std::bit_ceil(sorted.size()));
    feature.least = sorted.front();
    feature.starts = starts_.size();
    starts_.resize(starts_.size() + feature.steps + 1);
    std::array<std::uint64_t, 2> left_to_search{};
    for (const bool by_floats : {false, true}) {
      feature.by_floats = by_floats;
      FillStarts(feature);
      for (std::uint32_t step = 0; step < feature.steps; ++step) {
        const std::uint64_t size = starts_[feature.starts + step + 1] - starts_[feature.starts + step];
        left_to_search[by_floats ? 1 : 0] += size * size;
      }
    }
    feature.by_floats = left_to_search[1] < left_to_search[0];
    FillStarts(feature);
  }
  features_.push_back(feature);
}

/// Fills the grid of a feature according to its `by_floats`.
void ValueIndex::FillStarts(Feature& feature) {
  const float least = feature.sorted.front();
  const float most = feature.sorted.back();
  feature.by =
      static_cast<float>(feature.steps) / (feature.by_floats ? FloatsBetween(least, most) : most - least);
  if (!std::isfinite(feature.by)) feature.by = 0;
  std::uint32_t* const starts = starts_.data() + feature.starts;
  std::fill_n(starts, feature.steps + 1, 0);
  for (const float value : feature.sorted) ++starts[Step(feature, value) + 1];
  for (std::uint32_t step = 0; step < feature.steps; ++step) starts[step + 1] += starts[step];
}

}  // namespace warren::histgbt
