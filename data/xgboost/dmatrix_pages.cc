#include "data/xgboost/dmatrix_pages.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include "data/xgboost/c_api.h"
#include "data/xgboost/dmatrix.h"

namespace warren::data {

DMatrixPages::DMatrixPages(Pages<std::uint32_t>& pages, const std::string& cache_prefix, int threads)
    : pages_(pages) {
  xgboost::Check(XGProxyDMatrixCreate(&proxy_), "making a proxy DMatrix");
  const std::string config =
      fmt::format(R"({{"missing":NaN,"cache_prefix":{}{}}})", xgboost::Quote(cache_prefix),
                  threads > 0 ? fmt::format(R"(,"nthread":{})", threads) : "");
  const int result = XGDMatrixCreateFromCallback(this, proxy_, Reset, Next, config.c_str(), &dmatrix_);
  if (result == 0 && !failure_) return;
  const std::exception_ptr failure = failure_;
  std::string message;
  if (result != 0) message = XGBGetLastError();
  if (dmatrix_ != nullptr) XGDMatrixFree(dmatrix_);
  XGDMatrixFree(proxy_);
  if (failure) std::rethrow_exception(failure);
  throw DataError(fmt::format("XGBoost, making a DMatrix of pages: {}", message));
}

DMatrixPages::~DMatrixPages() {
  XGDMatrixFree(dmatrix_);
  XGDMatrixFree(proxy_);
}

// Exceptions must not propagate through XGBoost's code, so they are stored. The constructor rethrows an
// exception that occurs while it runs. A later exception ends the pages early and is not reported.
int DMatrixPages::Next(void* self) noexcept {
  auto& pages = *static_cast<DMatrixPages*>(self);
  try {
    return pages.GiveNext() ? 1 : 0;
  } catch (...) {
    pages.failure_ = std::current_exception();
    return 0;
  }
}

void DMatrixPages::Reset(void* self) noexcept {
  auto& pages = *static_cast<DMatrixPages*>(self);
  try {
    pages.pages_.Rewind();
  } catch (...) {
    pages.failure_ = std::current_exception();
  }
}

bool DMatrixPages::GiveNext() {
  RowView<std::uint32_t> page;
  if (!pages_.Next(page)) return false;
  xgboost::Check(XGProxyDMatrixSetDataCSR(proxy_, xgboost::Describe(page.offsets).c_str(),
                                          xgboost::Describe(page.indices).c_str(),
                                          xgboost::Describe(page.values).c_str(), page.columns),
                 "giving it a page");
  SetLabelsAndSuch(proxy_, page, pages_.shape().labels_per_row);
  return true;
}

}  // namespace warren::data
