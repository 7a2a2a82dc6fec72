#include "examples/histgbt/value_index.h"

#include <bit>
#include <cmath>

namespace warren::histgbt {
namespace {

/// Shorter lists are searched as they are. Longer ones than the other have no grid, whose steps a float could
/// not count.
constexpr std::size_t kFewest = 8;
constexpr std::size_t kMost = std::size_t{1} << 22;

}  // namespace

void ValueIndex::Add(std::span<const float> sorted) {
  Feature feature;
  feature.sorted = sorted;
  if (sorted.size() >= kFewest && sorted.size() <= kMost) {
    feature.steps = static_cast<std::uint32_t>(std::bit_ceil(sorted.size()));
    feature.least = sorted.front();
    feature.by = static_cast<float>(feature.steps) / (sorted.back() - sorted.front());
    if (!std::isfinite(feature.by)) feature.by = 0;
    feature.starts = starts_.size();
    starts_.resize(starts_.size() + feature.steps + 1);
    std::uint32_t* const starts = starts_.data() + feature.starts;
    for (const float value : sorted) ++starts[Step(feature, value) + 1];
    for (std::uint32_t step = 0; step < feature.steps; ++step) starts[step + 1] += starts[step];
  }
  features_.push_back(feature);
}

}  // namespace warren::histgbt
