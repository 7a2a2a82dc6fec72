// Reports reading progress to the job's tracker with WarrenReportReading (warren/c_api.h), which is available
// if librabit_xgboost is linked; otherwise does nothing.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "data/reader.h"

extern "C" [[gnu::weak]] int WarrenReportReading(const char* what, unsigned long long rows,
                                                 unsigned long long bytes, unsigned long long total_bytes,
                                                 double seconds);

namespace warren::xgb_train {

class ReadingReport {
 public:
  explicit ReadingReport(std::string what) : what_(std::move(what)) {}
  ~ReadingReport() {
    if (is_told_) Tell("", {});
  }
  ReadingReport(const ReadingReport&) = delete;
  ReadingReport& operator=(const ReadingReport&) = delete;

  void Show(const data::Progress& progress) {
    is_told_ = true;
    Tell(what_.c_str(), progress);
  }

 private:
  void Tell(const char* what, const data::Progress& progress) const {
    if (WarrenReportReading == nullptr) return;
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin_;
    WarrenReportReading(what, progress.rows, progress.bytes, progress.bytes_total, time.count());
  }

  std::string what_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool is_told_ = false;
};

}  // namespace warren::xgb_train
