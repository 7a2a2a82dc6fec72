// The training objectives: their names, their initial margins, and the labels that fit them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace warren::histgbt {

enum class Objective : std::uint8_t { kSquared, kLogistic, kSoftmax };

/// Returns XGBoost's name: reg:squarederror, binary:logistic or multi:softprob.
std::string_view Name(Objective objective);

/// Returns the initial margin of all rows from XGBoost's base_score; for binary:logistic, its log odds.
/// Throws std::runtime_error if base_score should be a probability and is not.
float BaseMargin(Objective objective, float base_score);

/// Throws std::runtime_error naming the first row whose label does not fit the objective. `set` is the name
/// of the data in messages.
void CheckLabels(Objective objective, int num_class, std::span<const float> labels, const std::string& set);

}  // namespace warren::histgbt
