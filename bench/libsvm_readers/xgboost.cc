#include <xgboost/c_api.h>

#include <memory>
#include <stdexcept>

#include "bench/libsvm_readers/peers.h"
#include "data/reader.h"
#include "data/xgboost/dmatrix.h"

namespace warren::bench {
namespace {

using Matrix = std::unique_ptr<void, decltype(&XGDMatrixFree)>;

void Check(int return_code) {
  if (return_code != 0) throw std::runtime_error(XGBGetLastError());
}

Matrix Load(bool through_warren, const std::string& path, int threads) {
  if (through_warren) {
    data::ReaderOptions options;
    options.threads = threads;
    const auto rows = data::ReadAll<std::uint32_t>(data::ParseDataUri(path), {}, options);
    return {data::MakeDMatrix(rows.View(), threads), XGDMatrixFree};
  }
  DMatrixHandle handle = nullptr;
  Check(XGDMatrixCreateFromFile((path + "?format=libsvm").c_str(), 1, &handle));
  return {handle, XGDMatrixFree};
}

Found Count(const Matrix& matrix) {
  bst_ulong rows = 0;
  bst_ulong entries = 0;
  Check(XGDMatrixNumRow(matrix.get(), &rows));
  Check(XGDMatrixNumNonMissing(matrix.get(), &entries));
  return {rows, entries};
}

}  // namespace

Found LoadWithXgboost(const std::string& path, int threads) {
  return Count(Load(false, path, threads));
}

Found LoadThroughWarren(const std::string& path, int threads) {
  return Count(Load(true, path, threads));
}

Found FirstRound(bool through_warren, const std::string& path, int threads) {
  const Matrix matrix = Load(through_warren, path, threads);
  DMatrixHandle handles[] = {matrix.get()};
  BoosterHandle booster = nullptr;
  Check(XGBoosterCreate(handles, 1, &booster));
  const std::unique_ptr<void, decltype(&XGBoosterFree)> owner(booster, XGBoosterFree);
  Check(XGBoosterSetParam(booster, "tree_method", "hist"));
  Check(XGBoosterSetParam(booster, "objective", "binary:logistic"));
  if (threads > 0) Check(XGBoosterSetParam(booster, "nthread", std::to_string(threads).c_str()));
  Check(XGBoosterUpdateOneIter(booster, 0, matrix.get()));
  return Count(matrix);
}

}  // namespace warren::bench
