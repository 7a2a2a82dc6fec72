#include "data/xgboost/dmatrix.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/error.h"
#include "data/xgboost/c_api.h"
#include "data/xgboost/groups.h"

namespace warren::data {
namespace {

using xgboost::Check;
using xgboost::Describe;

void SetInfo(void* dmatrix, const char* field, const std::string& array) {
  Check(XGDMatrixSetInfoFromInterface(dmatrix, field, array.c_str()), fmt::format("setting {}", field));
}

}  // namespace

void SetLabelsAndSuch(void* dmatrix, const RowView<std::uint32_t>& rows, std::uint64_t labels_per_row) {
  RequireAlike(rows);
  SetInfo(dmatrix, "label", Describe(rows.labels, LabelsOfEachRow(rows, labels_per_row)));
  if (rows.qids.empty()) {
    if (!rows.weights.empty()) SetInfo(dmatrix, "weight", Describe(rows.weights));
    return;
  }
  const std::vector<std::uint32_t> groups = GroupSizes(rows.qids);
  SetInfo(dmatrix, "group", Describe(std::span<const std::uint32_t>(groups)));
  if (rows.weights.empty()) return;
  const std::vector<float> weights = GroupWeights(rows.weights, groups);
  SetInfo(dmatrix, "weight", Describe(std::span<const float>(weights)));
}

void* MakeDMatrix(const RowView<std::uint32_t>& rows, int threads, std::uint64_t labels_per_row) {
  static constexpr std::uint64_t kNoRows[] = {0};
  const std::span<const std::uint64_t> offsets = rows.offsets.empty() ? std::span(kNoRows) : rows.offsets;
  const std::string config =
      threads > 0 ? fmt::format(R"({{"missing":NaN,"nthread":{}}})", threads) : R"({"missing":NaN})";
  DMatrixHandle handle = nullptr;
  Check(XGDMatrixCreateFromCSR(Describe(offsets).c_str(), Describe(rows.indices).c_str(),
                               Describe(rows.values).c_str(), rows.columns, config.c_str(), &handle),
        "making a DMatrix");
  std::unique_ptr<void, decltype(&XGDMatrixFree)> owner(handle, XGDMatrixFree);
  SetLabelsAndSuch(handle, rows, labels_per_row);
  return owner.release();
}

}  // namespace warren::data
