// Estimates how far another rank's core is from this one, by the time it takes to read cache lines that the
// rank has written.
//
// Cores that share a cache exchange a modified line in 20 to 80 ns, other cores in 100 to 200 ns. The
// distance may change while a job runs, because the kernel or a hypervisor moves ranks. It is therefore
// measured repeatedly, on reads that are needed anyway, of lines that the other rank has just written.
#pragma once

#include <atomic>
#include <cstdint>

namespace warren {

/// Reads a counter that grows at a constant rate, after all earlier loads have completed. Returns 0 if there
/// is no such counter.
std::uint64_t ReadTicks() noexcept;
/// Converts ticks to nanoseconds. Returns NaN for 0 ticks (there is no counter) and in the first 10 ms,
/// before the counter's rate is known.
double NanosecondsOf(std::uint64_t ticks) noexcept;

/// The estimated distance to one other core. Thread-safe, but if several threads report reads at the same
/// time, some of the reads may not count.
class CoreDistance {
 public:
  /// Records the time in nanoseconds that it took to read a line. Ignores NaN (unknown), reads served by this
  /// core's own cache, and interrupted reads.
  void Note(double ns) noexcept;
  /// Whether the cores share no cache. False until measurements show that they do not.
  bool is_far() const noexcept { return is_far_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> balance_{0};  ///< slow reads minus quick ones, within kEnough
  std::atomic<bool> is_far_{false};
};

}  // namespace warren
