#include "data/xgboost/groups.h"

#include <fmt/format.h>

#include <utility>

#include "data/error.h"

namespace warren::data {

RowsAlike::RowsAlike(std::function<void(const std::string&)> complain) : complain_(std::move(complain)) {}

void RowsAlike::Add(const RowView<std::uint32_t>& rows) {
  LookAtLabels(rows);
  LookAtWeights(rows);
  rows_ += rows.rows();
}

void RowsAlike::LookAtLabels(const RowView<std::uint32_t>& rows) {
  if (rows.rows() == 0) return;
  const bool one_each = rows.label_offsets.empty();
  if (!labels_) labels_ = one_each ? 1 : rows.label_offsets[1] - rows.label_offsets[0];
  if (one_each && labels_ == 1) return;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const std::uint64_t here = one_each ? 1 : rows.label_offsets[row + 1] - rows.label_offsets[row];
    if (here == labels_) continue;
    complain_(fmt::format(
        "row {} has {} labels, but the rows before have {}; XGBoost needs the same number in every row",
        rows_ + row, here, *labels_));
  }
}

void RowsAlike::LookAtWeights(const RowView<std::uint32_t>& rows) {
  for (std::size_t row = 0; row < rows.qids.size(); ++row) {
    const float weight = rows.weights.empty() ? 1.0F : rows.weights[row];
    if (query_ != rows.qids[row]) {
      query_ = rows.qids[row];
      weight_ = weight;
    } else if (weight != weight_) {
      complain_(
          fmt::format("row {} has weight {}, but its query began with {}; XGBoost takes one weight per query",
                      rows_ + row, weight, weight_));
    }
  }
}

void RequireAlike(const RowView<std::uint32_t>& rows) {
  RowsAlike([](const std::string& words) { throw DataError(words); }).Add(rows);
}

std::size_t LabelsOfEachRow(const RowView<std::uint32_t>& rows, std::uint64_t labels_per_row) {
  const std::uint64_t labels = rows.rows() == 0             ? labels_per_row
                               : rows.label_offsets.empty() ? 1
                                                            : rows.label_offsets[1] - rows.label_offsets[0];
  if (labels_per_row == 0) {
    throw DataError(fmt::format(
        "the rows of this part have {} labels, but others have a different number; XGBoost needs the same number in every row",
        labels));
  }
  return labels;
}

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
    row += size;
  }
  return of_groups;
}

}  // namespace warren::data
