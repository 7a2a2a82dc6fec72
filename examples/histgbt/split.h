// The choice of a node's best split: the part that CPU and GPU share.
#pragma once

#include <cstdint>

#include "examples/histgbt/arithmetic.h"

namespace warren::histgbt {

struct SplitParameters {
  double lambda = 1;
  double gamma = 0;
  double min_child_weight = 1;
};

/// The best split found so far. For equal gains, the lower feature wins, then the lower bin, then sending
/// missing values right; the result does not depend on the order of the search.
struct Split {
  double gain = 0;  ///< 0: no split
  std::uint32_t feature = 0;
  std::uint32_t end_bin = 0;  ///< values in lower bins go left
  std::uint32_t default_left = 0;
  GradientSum left;
  GradientSum right;

  HISTGBT_HD bool IsBetterThan(const Split& other) const {
    if (gain != other.gain) return gain > other.gain;
    if (feature != other.feature) return feature < other.feature;
    if (end_bin != other.end_bin) return end_bin < other.end_bin;
    return default_left < other.default_left;
  }
};

/// A node to split: the gradient sum of its rows, and Gain of that sum.
struct SplitNode {
  GradientSum sum;
  double gain = 0;
};

/// XGBoost's kRtEps; a split must gain more.
inline constexpr double kLeastGain = 1e-6;

HISTGBT_HD inline void Consider(const SplitNode& node, const GradientSum& left, std::uint32_t feature,
                                std::uint32_t end_bin, bool default_left, const Scale& scale,
                                const SplitParameters& parameters, Split& best) {
  const GradientSum right = node.sum - left;
  if (static_cast<double>(left.hessian) * scale.hessian < parameters.min_child_weight ||
      static_cast<double>(right.hessian) * scale.hessian < parameters.min_child_weight) {
    return;
  }
  const double gain =
      Gain(left, scale, parameters.lambda) + Gain(right, scale, parameters.lambda) - node.gain;
  if (!(gain > kLeastGain) || gain < parameters.gamma) return;
  const Split split{gain, feature, end_bin, default_left ? 1U : 0U, left, right};
  if (split.IsBetterThan(best)) best = split;
}

/// Considers the splits after one bin of a feature; for the last bin, the split between missing and present
/// values. `up_to` is the sum of the bins up to and including `bin`, `missing` the sum of the rows without
/// the feature.
HISTGBT_HD inline void ConsiderBin(const SplitNode& node, const GradientSum& up_to,
                                   const GradientSum& missing, std::uint32_t feature, std::uint32_t bin,
                                   bool is_last, const Scale& scale, const SplitParameters& parameters,
                                   Split& best) {
  const bool any_missing = missing.hessian != 0 || missing.gradient != 0;
  if (is_last) {
    if (any_missing) Consider(node, missing, feature, 0, true, scale, parameters, best);
    return;
  }
  Consider(node, up_to, feature, bin + 1, false, scale, parameters, best);
  if (any_missing) Consider(node, up_to + missing, feature, bin + 1, true, scale, parameters, best);
}

}  // namespace warren::histgbt
