// Finds good settings by trial: rank 0 measures how many bytes per second the named operations process with
// each candidate, and keeps the best candidate. Fusion sizes are tried first; then cycle times, with the best
// fusion size. Each candidate is rated by the median of several samples, so that a single disturbance does
// not decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rabit_engine/coordinator/request.h"

namespace warren::coordinator {

class Tuner {
 public:
  explicit Tuner(Settings begin);
  /// The settings to use now.
  const Settings& settings() const { return candidates_[current_]; }
  /// Records that `bytes` were processed in a cycle of `seconds`, measured from the end of the previous
  /// cycle.
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
  std::vector<double> rates_;  ///< the current candidate's samples
  std::uint64_t bytes_ = 0;
  double seconds_ = 0;
  bool warming_up_ = true;
};

}  // namespace warren::coordinator
