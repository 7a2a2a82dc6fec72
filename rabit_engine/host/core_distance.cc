#include "rabit_engine/host/core_distance.h"

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace warren {
namespace {

using Clock = std::chrono::steady_clock;

/// A read that took less found the line in this core's own cache. (Reading the ticks twice takes 20 ns.)
constexpr double kOwnCacheNs = 25;
/// Slower reads came from a core that shares no cache with this one. Measured on an AMD EPYC: 50 to 60 and
/// 140 to 160 ns.
constexpr double kFarNs = 105;
/// A read that took longer was interrupted.
constexpr double kInterruptedNs = 1000;
/// As many more reads of one kind than of the other change the answer.
constexpr int kEnough = 3;

#if defined(__x86_64__)
/// Whether the processor has rdtscp and a counter whose rate does not change with the processor's.
bool HasSteadyTicks() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kRdtscp = 1U << 27;
  constexpr unsigned kInvariant = 1U << 8;
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) == 0 || (edx & kRdtscp) == 0) return false;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariant) != 0;
}
#endif

/// Returns the ticks of a nanosecond; 0 in the first millisecond, when this is not known yet.
double TicksPerNanosecond() noexcept {
  static const Clock::time_point begin = Clock::now();
  static const std::uint64_t first = ReadTicks();
  static std::atomic<double> known{0};
  double rate = known.load(std::memory_order_relaxed);
  if (rate > 0) return rate;
  const auto passed = Clock::now() - begin;
  if (passed < std::chrono::milliseconds(1)) return 0;
  rate = static_cast<double>(ReadTicks() - first) / std::chrono::duration<double, std::nano>(passed).count();
  known.store(rate, std::memory_order_relaxed);
  return rate;
}

}  // namespace

std::uint64_t ReadTicks() noexcept {
#if defined(__x86_64__)
  static const bool has_steady_ticks = HasSteadyTicks();
  if (!has_steady_ticks) return 0;
  unsigned core = 0;
  const std::uint64_t ticks = __rdtscp(&core);
  _mm_lfence();
  return ticks;
#else
  return 0;
#endif
}

bool CoreDistance::Note(std::uint64_t ticks) noexcept {
  const double rate = TicksPerNanosecond();
  return rate > 0 && NoteNanoseconds(static_cast<double>(ticks) / rate);
}

bool CoreDistance::NoteNanoseconds(double ns) noexcept {
  if (ns < kOwnCacheNs || ns > kInterruptedNs) return false;
  const int balance =
      std::clamp(balance_.load(std::memory_order_relaxed) + (ns < kFarNs ? -1 : 1), -kEnough, kEnough);
  balance_.store(balance, std::memory_order_relaxed);
  const bool was_far = is_far_.load(std::memory_order_relaxed);
  const bool is_far = balance == kEnough || (was_far && balance > -kEnough);
  if (is_far == was_far) return false;
  is_far_.store(is_far, std::memory_order_relaxed);
  return true;
}

}  // namespace warren
