// How good the predictions are. All numbers come from sums of whole numbers, so they are the same for any
// number of workers, and early stopping is, too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "examples/histgbt/objective.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// The labels, weights and margins of a data set; margins: class after class, each of all rows.
struct Predictions {
  std::span<const float> labels;
  std::span<const float> weights;  ///< empty: all are 1
  std::span<const float> margins;
  Objective objective = Objective::kSquared;
  int num_class = 1;
};

/// auc, logloss, error, rmse, mae, merror, mlogloss.
bool IsMetric(std::string_view name);
/// What the objective is measured by when nothing is said.
std::string_view DefaultMetric(Objective objective);
/// Throws std::runtime_error when a metric does not fit an objective.
void CheckMetric(std::string_view name, Objective objective);
/// Whether a greater value is a better one.
bool IsBetterWhenGreater(std::string_view name);

/// Over the rows of all workers; a collective call. A row's loss is rounded to a multiple of 2^-k of the
/// greatest, k being as great as 63 bits for the sum allow, at most 40.
///
/// auc: pairs are told apart when their margins lie in different steps of 2^-11, from -16 to 16 (beyond, all
/// count as equal); those that are not count half, as equal predictions do. NaN when one of the two classes
/// is not there.
double Evaluate(std::string_view name, const Predictions& predictions, Threads& threads);

}  // namespace warren::histgbt
