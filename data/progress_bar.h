// A line on the terminal for reads that take long.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "data/reader.h"

namespace warren::data {

/// Shows how far a reader is, on standard error, if that is a terminal, once the read has taken a second, and
/// a few times a second from then on. The line is gone when this is. For ReaderOptions::on_progress.
class ProgressBar {
 public:
  /// `what`: "reading train.svm".
  explicit ProgressBar(std::string what);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool is_terminal_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;
  bool shown_ = false;
};

/// The line itself: "reading x: [=====>    ] 48 %, 1.9 GB/s, 3 s to go". Without a known total: bytes instead
/// of the bar. At most `width` characters.
std::string DescribeProgress(const std::string& what, const Progress& progress, double seconds,
                             std::size_t width);

}  // namespace warren::data
