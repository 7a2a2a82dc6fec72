#include "examples/histgbt/objective.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace warren::histgbt {

std::string_view Name(Objective objective) {
  switch (objective) {
    case Objective::kSquared:
      return "reg:squarederror";
    case Objective::kLogistic:
      return "binary:logistic";
    case Objective::kSoftmax:
      break;
  }
  return "multi:softprob";
}

float BaseMargin(Objective objective, float base_score) {
  if (objective != Objective::kLogistic) return base_score;
  const float margin = -std::log(1.0F / base_score - 1.0F);
  if (!(base_score > 0 && base_score < 1) || !std::isfinite(margin)) {
    throw std::runtime_error(fmt::format(
        "base_score is {}, but for binary:logistic it is a probability, between 0 and 1", base_score));
  }
  return margin;
}

void CheckLabels(Objective objective, int num_class, std::span<const float> labels, const std::string& set) {
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const float label = labels[row];
    const char* expected = nullptr;
    if (objective == Objective::kLogistic && !(label >= 0 && label <= 1))
      expected = "a label between 0 and 1";
    if (objective == Objective::kSoftmax &&
        !(label >= 0 && label < static_cast<float>(num_class) && label == std::floor(label))) {
      expected = "a class, a whole number from 0 to num_class - 1";
    }
    if (!std::isfinite(label)) expected = "a number";
    if (expected != nullptr) {
      throw std::runtime_error(fmt::format("{}: row {} of this worker's share has the label {}; {} takes {}",
                                           set, row + 1, label, Name(objective), expected));
    }
  }
}

}  // namespace warren::histgbt
