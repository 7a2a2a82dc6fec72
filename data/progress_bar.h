// A progress line on the terminal for long reads.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "data/reader.h"

namespace warren::data {

/// Shows a reader's progress on standard error if that is a terminal, from one second after construction, at
/// most five times per second. The destructor removes the line. For use in ReaderOptions::on_progress.
class ProgressBar {
 public:
  /// `what` is e.g. "reading train.svm".
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

/// Returns the line, e.g. "reading x: [=====     ] 48 %, 1.9 GB/s, 3 s to go", of at most `width` characters.
/// If the total is unknown or has been exceeded, it shows the bytes and rows read instead of the bar.
std::string DescribeProgress(const std::string& what, const Progress& progress, double seconds,
                             std::size_t width);

}  // namespace warren::data
