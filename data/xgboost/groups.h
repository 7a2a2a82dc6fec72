// Rows as XGBoost wants them described: queries by their sizes, as many labels in every row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/row_block.h"

namespace warren::data {

/// Looks at rows, block after block, for what they must have in common: the number of labels, and within each
/// query the weight.
class RowsAlike {
 public:
  /// `complain` is called for each row that differs, with words that begin with its number, counted from 0.
  explicit RowsAlike(std::function<void(const std::string&)> complain);

  /// Looks at the next rows.
  void Add(const RowView<std::uint32_t>& rows);

 private:
  void LookAtLabels(const RowView<std::uint32_t>& rows);
  void LookAtWeights(const RowView<std::uint32_t>& rows);

  std::function<void(const std::string&)> complain_;
  std::uint64_t rows_ = 0;  ///< how many were added before
  std::optional<std::uint64_t> labels_;
  std::optional<std::uint64_t> query_;
  float weight_ = 1;  ///< the weight of the query's first row
};

/// Throws DataError for the first row of which RowsAlike complains.
void RequireAlike(const RowView<std::uint32_t>& rows);

/// How many labels each row has, of rows that RequireAlike has let through; `labels_per_row`, that of the
/// whole data set (Shape), where there are no rows. Throws DataError when other rows of the data set differ.
std::size_t LabelsOfEachRow(const RowView<std::uint32_t>& rows, std::uint64_t labels_per_row);

/// Rows of each query, in the order of the queries.
std::vector<std::uint32_t> GroupSizes(std::span<const std::uint64_t> qids);

/// One weight for each query, that of its first row.
std::vector<float> GroupWeights(std::span<const float> weights, std::span<const std::uint32_t> group_sizes);

}  // namespace warren::data
