// Prepares rows for XGBoost: checks that all have the same number of labels, and computes the sizes and
// weights of queries.
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

/// Checks, block after block, that rows agree in the number of labels and, within each query, in the weight.
class RowsAlike {
 public:
  /// `complain` is called for each row that differs, with a message that names the row by its zero-based
  /// number among all rows added.
  explicit RowsAlike(std::function<void(const std::string&)> complain);

  /// Checks the next rows.
  void Add(const RowView<std::uint32_t>& rows);

 private:
  void LookAtLabels(const RowView<std::uint32_t>& rows);
  void LookAtWeights(const RowView<std::uint32_t>& rows);

  std::function<void(const std::string&)> complain_;
  std::uint64_t rows_ = 0;  ///< number of rows added before
  std::optional<std::uint64_t> labels_;
  std::optional<std::uint64_t> query_;
  float weight_ = 1;  ///< the weight of the query's first row
};

/// Throws DataError for the first row that RowsAlike rejects.
void RequireAlike(const RowView<std::uint32_t>& rows);

/// Returns the number of labels of each row, for rows that RequireAlike accepts. Without rows, returns
/// `labels_per_row`, the number for the whole data set (Shape). Throws DataError if other rows of the data
/// set have a different number.
std::size_t LabelsOfEachRow(const RowView<std::uint32_t>& rows, std::uint64_t labels_per_row);

/// Returns the number of rows of each query, in order.
std::vector<std::uint32_t> GroupSizes(std::span<const std::uint64_t> qids);

/// Returns one weight per query, the weight of its first row.
std::vector<float> GroupWeights(std::span<const float> weights, std::span<const std::uint32_t> group_sizes);

}  // namespace warren::data
