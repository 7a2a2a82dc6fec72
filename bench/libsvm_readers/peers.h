// The readers of others, and XGBoost behind ours.
#pragma once

#include <cstdint>
#include <string>

namespace warren::bench {

struct Found {
  std::uint64_t rows = 0;
  std::uint64_t entries = 0;
};

/// dmlc-core's iterator over rows in memory, with as many threads as it likes.
Found ReadWithDmlc(const std::string& path);
/// XGBoost's own reader into a DMatrix. 0 threads: its own choice.
Found LoadWithXgboost(const std::string& path, int threads);
/// Our reader into a DMatrix.
Found LoadThroughWarren(const std::string& path, int threads);
/// From the file to the end of the first round of boosting (hist, depth 6), through our reader or XGBoost's.
Found FirstRound(bool through_warren, const std::string& path, int threads);

}  // namespace warren::bench
