// Pages into XGBoost's external memory: a DMatrix that takes its rows page by page and keeps them in files of
// its own.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "data/cache/pages.h"

namespace warren::data {

/// A DMatrix that XGBoost builds from `pages`, rewinding them as often as it wants, within this call and, by
/// some versions, later: `pages` must live as long as this. `cache_prefix`: where XGBoost keeps its own form
/// of them. Throws DataError.
class DMatrixPages {
 public:
  DMatrixPages(Pages<std::uint32_t>& pages, const std::string& cache_prefix, int threads = 0);
  ~DMatrixPages();
  DMatrixPages(const DMatrixPages&) = delete;
  DMatrixPages& operator=(const DMatrixPages&) = delete;

  void* handle() const { return dmatrix_; }

 private:
  static int Next(void* self) noexcept;
  static void Reset(void* self) noexcept;
  bool GiveNext();

  Pages<std::uint32_t>& pages_;
  void* proxy_ = nullptr;
  void* dmatrix_ = nullptr;
  std::exception_ptr failure_;
};

}  // namespace warren::data
