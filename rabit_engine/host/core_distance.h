// How far the core of another rank is, learned from the times in which its cache lines arrive.
//
// Cores that share a cache exchange a modified line in 20 to 80 ns; between others it takes 100 to 200. The
// distance may change while a job runs, because the kernel or a hypervisor moves ranks, so it is measured
// where a rank reads a line that the other has just written anyway.
#pragma once

#include <atomic>
#include <cstdint>

namespace warren {

/// A number that grows at a constant rate, read after all earlier loads have completed; 0 if the processor
/// has no such counter.
std::uint64_t ReadTicks() noexcept;
/// How long so many ticks are; NaN without a counter, and in the first milliseconds, before its rate is
/// known.
double NanosecondsOf(std::uint64_t ticks) noexcept;

/// Thread-safe; of reads that several threads report at once, some may not count.
class CoreDistance {
 public:
  /// Reports that reading a line took so many nanoseconds; NaN if this is unknown. The line may have been in
  /// this core's own cache.
  void Note(double ns) noexcept;
  /// Whether the cores share no cache. False until measurements say otherwise.
  bool is_far() const noexcept { return is_far_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> balance_{0};  ///< slow reads minus quick ones, within kEnough
  std::atomic<bool> is_far_{false};
};

}  // namespace warren
