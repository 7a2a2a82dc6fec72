// Finds settings by trying: rank 0 measures how fast bytes are reduced with each of some settings and stays
// with the best. First the fusion sizes are tried, then, with the best of them, the cycle times. Each gets
// some samples, of which the median counts, so that one disturbed moment decides nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rabit_engine/coordinator/request.h"

namespace warren::coordinator {

class Tuner {
 public:
  explicit Tuner(Settings begin);
  /// What to work with now.
  const Settings& settings() const { return candidates_[current_]; }
  /// `bytes` were reduced in a cycle that took `seconds`, from the end of the last to its own.
  void Add(std::uint64_t bytes, double seconds);
  bool is_done() const { return stage_ == Stage::kDone; }

 private:
  enum class Stage { kFusion, kCycle, kDone };
  void EndSample();
  void EndCandidate();
  void Try(std::vector<Settings> candidates);

  Stage stage_ = Stage::kFusion;
  std::vector<Settings> candidates_;
  std::size_t current_ = 0;
  std::size_t best_ = 0;
  double best_rate_ = 0;
  std::vector<double> rates_;  ///< of the current one's samples
  std::uint64_t bytes_ = 0;
  double seconds_ = 0;
  bool warming_up_ = true;
};

}  // namespace warren::coordinator
