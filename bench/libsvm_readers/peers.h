// Readers of other projects, and XGBoost fed by our reader.
#pragma once

#include <cstdint>
#include <string>

namespace warren::bench {

struct Found {
  std::uint64_t rows = 0;
  std::uint64_t entries = 0;
};

/// dmlc-core's iterator over rows in memory, with its own choice of threads.
Found ReadWithDmlc(const std::string& path);
/// XGBoost's reader into a DMatrix. 0 threads leaves the choice to XGBoost.
Found LoadWithXgboost(const std::string& path, int threads);
/// Our reader into a DMatrix.
Found LoadThroughWarren(const std::string& path, int threads);
/// From reading the file to the end of the first round of boosting (hist, depth 6), through our reader or
/// XGBoost's.
Found FirstRound(bool through_warren, const std::string& path, int threads);

}  // namespace warren::bench
