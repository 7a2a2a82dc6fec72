// Parses the lines that XGBoost and LightGBM print after a round:
// "[12]\ttrain-rmse:0.21350\teval-rmse:0.21870" and "[12]\ttraining's auc: 0.91\tvalid_1's auc: 0.87", with
// any text before the bracket. Does no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warren::submit {

struct EvaluationLine {
  std::int64_t round = 0;  ///< as printed
  std::vector<std::pair<std::string, double>> metrics;
};

/// Returns nullopt if the line is not an evaluation.
std::optional<EvaluationLine> ParseEvaluation(std::string_view line);

}  // namespace warren::submit
