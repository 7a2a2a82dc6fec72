// Evaluation of predictions. All metrics are computed from sums of whole numbers, so they, and therefore
// early stopping, are the same for any number of workers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "examples/histgbt/objective.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// The labels, weights and margins of a data set. The margins are stored class by class, each with one margin
/// per row.
struct Predictions {
  std::span<const float> labels;
  std::span<const float> weights;  ///< empty: all are 1
  std::span<const float> margins;
  Objective objective = Objective::kSquared;
  int num_class = 1;
};

/// Whether `name` is one of auc, logloss, error, rmse, mae, merror, mlogloss.
bool IsMetric(std::string_view name);
/// The default metric of an objective.
std::string_view DefaultMetric(Objective objective);
/// Throws std::runtime_error if the metric does not fit the objective.
void CheckMetric(std::string_view name, Objective objective);
/// Whether greater values are better.
bool IsBetterWhenGreater(std::string_view name);

/// Evaluates the rows of all workers; a collective call. Each row's weighted loss is rounded to a multiple of
/// 2^-k times the power of two above the greatest one, and its weight likewise, with k as large as a 63-bit
/// sum allows, but at most 40. NaN if a loss is not finite.
///
/// auc: two rows are distinguished if their margins lie in different steps of width 2^-11 from -16 to 16
/// (margins beyond that are clamped); otherwise the pair counts half, like equal predictions. NaN if one of
/// the two classes is absent, or a margin is NaN.
double Evaluate(std::string_view name, const Predictions& predictions, Threads& threads);

}  // namespace warren::histgbt
