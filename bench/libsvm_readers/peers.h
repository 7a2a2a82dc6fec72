// Readers of other projects, and XGBoost fed by our reader.
#pragma once

#include <cstdint>
#include <string>

namespace warren::bench {

struct Found {
  std::uint64_t rows = 0;
  std::uint64_t entries = 0;
};

/// Reads with dmlc-core's iterator over rows in memory, which chooses its number of threads.
Found ReadWithDmlc(const std::string& path);
/// Loads the file into a DMatrix with XGBoost's reader, which ignores `threads` and chooses the number
/// itself.
Found LoadWithXgboost(const std::string& path, int threads);
/// Loads the file into a DMatrix with our reader.
Found LoadThroughWarren(const std::string& path, int threads);
/// Loads the file with our reader or XGBoost's, and boosts one round (hist, depth 6).
Found FirstRound(bool through_warren, const std::string& path, int threads);

}  // namespace warren::bench
