#include "data/xgboost/groups.h"

#include <fmt/format.h>

#include "data/error.h"

namespace warren::data {

std::size_t LabelsOfEachRow(const RowView<std::uint32_t>& rows, std::uint64_t labels_per_row) {
  const bool has_offsets = rows.rows() > 0 && !rows.label_offsets.empty();
  const std::uint64_t labels = has_offsets       ? rows.label_offsets[1] - rows.label_offsets[0]
                               : rows.rows() > 0 ? 1
                                                 : labels_per_row;
  for (std::size_t row = 0; has_offsets && row < rows.rows(); ++row) {
    const std::uint64_t here = rows.label_offsets[row + 1] - rows.label_offsets[row];
    if (here != labels) {
      throw DataError(fmt::format(
          "row {} has {} labels where the rows before have {}; XGBoost takes as many in every row", row, here,
          labels));
    }
  }
  if (labels_per_row == 0) {
    throw DataError(fmt::format(
        "the rows of this part have {} labels and others have another number; XGBoost takes as many in "
        "every row",
        labels));
  }
  return labels;
}

/// Rows of each query, in the order of the queries.
std::vector<std::uint32_t> GroupSizes(std::span<const std::uint64_t> qids) {
  std::vector<std::uint32_t> sizes;
  for (std::size_t row = 0; row < qids.size(); ++row) {
    if (row == 0 || qids[row] != qids[row - 1]) sizes.push_back(0);
    ++sizes.back();
  }
  return sizes;
}

std::vector<float> GroupWeights(std::span<const float> weights, std::span<const std::uint32_t> group_sizes) {
  std::vector<float> of_groups;
  std::size_t row = 0;
  for (const std::uint32_t size : group_sizes) {
    of_groups.push_back(weights[row]);
    for (const std::size_t end = row + size; row < end; ++row) {
      if (weights[row] == of_groups.back()) continue;
      throw DataError(
          fmt::format("row {} weighs {} where its query began with {}; XGBoost takes one weight a query", row,
                      weights[row], of_groups.back()));
    }
  }
  return of_groups;
}

}  // namespace warren::data
