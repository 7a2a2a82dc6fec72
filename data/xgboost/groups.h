// Rows as XGBoost wants them described: queries by their sizes, as many labels in every row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/row_block.h"

namespace warren::data {

/// How many labels each row has; `labels_per_row`, that of the whole data set (Shape), where there are no
/// rows. Throws DataError when rows differ, here or in the data set.
std::size_t LabelsOfEachRow(const RowView<std::uint32_t>& rows, std::uint64_t labels_per_row);

/// Rows of each query, in the order of the queries.
std::vector<std::uint32_t> GroupSizes(std::span<const std::uint64_t> qids);

/// One weight for each query. Throws DataError when rows of one query differ.
std::vector<float> GroupWeights(std::span<const float> weights, std::span<const std::uint32_t> group_sizes);

}  // namespace warren::data
