#include "rabit_engine/coordinator/tuner.h"

#include <algorithm>
#include <utility>

namespace warren::coordinator {
namespace {

constexpr std::size_t kSamples = 7;
constexpr double kSampleSeconds = 0.05;
constexpr std::uint64_t kFusionBytes[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
constexpr std::uint64_t kCycleMicroseconds[] = {100, 300, 1'000, 3'000};

}  // namespace

Tuner::Tuner(Settings begin) {
  std::vector<Settings> candidates{begin};
  for (const std::uint64_t bytes : kFusionBytes) {
    candidates.push_back(begin);  // keeps the patience
    candidates.back().fusion_bytes = bytes;
  }
  Try(std::move(candidates));
}

void Tuner::Try(std::vector<Settings> candidates) {
  candidates_ = std::move(candidates);
  current_ = best_ = 0;
  best_rate_ = 0;
}

void Tuner::Add(std::uint64_t bytes, double seconds) {
  if (is_done()) return;
  bytes_ += bytes;
  seconds_ += seconds;
  if (seconds_ >= kSampleSeconds && bytes_ > 0) EndSample();
}

void Tuner::EndSample() {
  const double rate = static_cast<double>(std::exchange(bytes_, 0)) / std::exchange(seconds_, 0.0);
  if (std::exchange(warming_up_, false)) return;
  rates_.push_back(rate);
  if (rates_.size() == kSamples) EndCandidate();
}

void Tuner::EndCandidate() {
  std::nth_element(rates_.begin(), rates_.begin() + kSamples / 2, rates_.end());
  if (rates_[kSamples / 2] > best_rate_) {
    best_rate_ = rates_[kSamples / 2];
    best_ = current_;
  }
  rates_.clear();
  warming_up_ = true;
  if (++current_ < candidates_.size()) return;
  const Settings best = candidates_[best_];
  if (stage_ == Stage::kFusion) {
    stage_ = Stage::kCycle;
    std::vector<Settings> candidates{best};
    for (const std::uint64_t cycle : kCycleMicroseconds) {
      candidates.push_back(best);
      candidates.back().cycle_us = cycle;
    }
    return Try(std::move(candidates));
  }
  stage_ = Stage::kDone;
  Try({best});
}

}  // namespace warren::coordinator
