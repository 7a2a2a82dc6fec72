// Idle decoders, kept for later calls of ReadAt. Each keeps the state in which its last call ended. Internal
// to data/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace warren::data::internal {

/// A pool of idle decoders. Thread-safe.
template <typename Decoder>
class SpareDecoders {
 public:
  /// Returns the idle decoder with the greatest `worth(decoder)`, an unsigned number; null if the caller
  /// should make a new one. A decoder that is worth 0 to this caller may be useful to another, so it is
  /// returned only if the pool is full.
  template <typename Worth>
  std::unique_ptr<Decoder> Take(const Worth& worth) {
    const std::lock_guard lock(mutex_);
    std::size_t best = 0;
    std::uint64_t best_worth = 0;
    for (std::size_t i = 0; i < spare_.size(); ++i) {
      const std::uint64_t its_worth = worth(*spare_[i]);
      if (its_worth > best_worth) {
        best = i;
        best_worth = its_worth;
      }
    }
    if (best_worth == 0 && spare_.size() < kMostSpare) return nullptr;
    return TakeOut(best);
  }

  void Return(std::unique_ptr<Decoder> decoder) {
    const std::lock_guard lock(mutex_);
    if (spare_.size() == kMostSpare) TakeOut(0);  // drop the decoder that has been idle longest
    spare_.push_back(std::move(decoder));
  }

 private:
  static constexpr std::size_t kMostSpare = 8;

  std::unique_ptr<Decoder> TakeOut(std::size_t i) {
    std::unique_ptr<Decoder> decoder = std::move(spare_[i]);
    spare_.erase(spare_.begin() + static_cast<std::ptrdiff_t>(i));
    return decoder;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Decoder>> spare_;  ///< in the order in which they were returned
};

}  // namespace warren::data::internal
