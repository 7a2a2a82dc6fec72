// What is learned: from labels and margins to gradients, and from margins to predictions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace warren::histgbt {

enum class Objective : std::uint8_t { kSquared, kLogistic, kSoftmax };

/// As XGBoost names it: reg:squarederror, binary:logistic, multi:softprob.
std::string_view Name(Objective objective);

/// The margin that all rows begin with, from XGBoost's base_score: the log of the odds of binary:logistic.
/// Throws std::runtime_error when there is none.
float BaseMargin(Objective objective, float base_score);

/// Throws std::runtime_error naming the first row whose label the objective cannot take. `set` is what
/// messages call the data.
void CheckLabels(Objective objective, int num_class, std::span<const float> labels, const std::string& set);

}  // namespace warren::histgbt
