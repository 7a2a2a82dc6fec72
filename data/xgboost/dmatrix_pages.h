// Feeds pages to XGBoost's external memory: a DMatrix that receives its rows page by page and stores them in
// its own files.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "data/cache/pages.h"

namespace warren::data {

/// A DMatrix that XGBoost builds from `pages`. XGBoost rewinds `pages` as often as it needs, in the
/// constructor and, in some versions, later, so `pages` must outlive this object. XGBoost stores the pages in
/// a different form in files whose names begin with `cache_prefix`. Throws DataError.
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
