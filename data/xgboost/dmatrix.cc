#include "data/xgboost/dmatrix.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/error.h"
#include "data/xgboost/c_api.h"

namespace warren::data {
namespace {

using xgboost::Check;
using xgboost::Describe;

void SetInfo(void* dmatrix, const char* field, const std::string& array) {
  Check(XGDMatrixSetInfoFromInterface(dmatrix, field, array.c_str()), fmt::format("setting {}", field));
}

std::size_t LabelsOfEachRow(const RowView<std::uint32_t>& rows) {
  if (rows.label_offsets.empty()) return 1;
  const std::uint64_t labels = rows.label_offsets[1] - rows.label_offsets[0];
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const std::uint64_t here = rows.label_offsets[row + 1] - rows.label_offsets[row];
    if (here != labels) {
      throw DataError(fmt::format(
          "row {} has {} labels where the rows before have {}; XGBoost takes as many in every row", row, here,
          labels));
    }
  }
  return labels;
}

/// Rows of each query, in the order of the queries.
std::vector<std::uint32_t> Groups(std::span<const std::uint64_t> qids) {
  std::vector<std::uint32_t> sizes;
  for (std::size_t row = 0; row < qids.size(); ++row) {
    if (row == 0 || qids[row] != qids[row - 1]) sizes.push_back(0);
    ++sizes.back();
  }
  return sizes;
}

std::vector<float> GroupWeights(std::span<const float> weights, std::span<const std::uint32_t> groups) {
  std::vector<float> of_groups;
  std::size_t row = 0;
  for (const std::uint32_t size : groups) {
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

}  // namespace

void SetLabelsAndSuch(void* dmatrix, const RowView<std::uint32_t>& rows) {
  SetInfo(dmatrix, "label", Describe(rows.labels, rows.rows() == 0 ? 1 : LabelsOfEachRow(rows)));
  if (rows.qids.empty()) {
    if (!rows.weights.empty()) SetInfo(dmatrix, "weight", Describe(rows.weights));
    return;
  }
  const std::vector<std::uint32_t> groups = Groups(rows.qids);
  SetInfo(dmatrix, "group", Describe(std::span<const std::uint32_t>(groups)));
  if (rows.weights.empty()) return;
  const std::vector<float> weights = GroupWeights(rows.weights, groups);
  SetInfo(dmatrix, "weight", Describe(std::span<const float>(weights)));
}

void* MakeDMatrix(const RowView<std::uint32_t>& rows, int threads) {
  static constexpr std::uint64_t kNoRows[] = {0};
  const std::span<const std::uint64_t> offsets = rows.offsets.empty() ? std::span(kNoRows) : rows.offsets;
  const std::string config =
      threads > 0 ? fmt::format(R"({{"missing":NaN,"nthread":{}}})", threads) : R"({"missing":NaN})";
  DMatrixHandle handle = nullptr;
  Check(XGDMatrixCreateFromCSR(Describe(offsets).c_str(), Describe(rows.indices).c_str(),
                               Describe(rows.values).c_str(), rows.columns, config.c_str(), &handle),
        "making a DMatrix");
  std::unique_ptr<void, decltype(&XGDMatrixFree)> owner(handle, XGDMatrixFree);
  SetLabelsAndSuch(handle, rows);
  return owner.release();
}

}  // namespace warren::data
