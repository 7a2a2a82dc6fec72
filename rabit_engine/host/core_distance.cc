#include "rabit_engine/host/core_distance.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace warren {
namespace {

using Clock = std::chrono::steady_clock;

/// A read faster than this found the line in this core's own cache. Of this time, reading the ticks twice
/// takes 20 ns.
constexpr double kOwnCacheNs = 25;
/// A read slower than this fetched the line from a core that shares no cache with this one. Measured on an
/// AMD EPYC: 50 to 60 ns with a shared cache, 140 to 160 ns without.
constexpr double kFarNs = 105;
/// A read slower than this was interrupted.
constexpr double kInterruptedNs = 1000;
/// The number of slow reads minus that of quick reads is kept between -kEnough and kEnough. is_far() becomes
/// true at kEnough and false at -kEnough.
constexpr int kEnough = 3;

#if defined(__x86_64__)
/// Whether the processor has rdtscp and an invariant TSC, which counts at a constant rate whatever the
/// processor's frequency.
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

/// A point in time, read from both clocks.
struct Instant {
  Clock::time_point time;
  std::uint64_t ticks = 0;
  bool is_exact = false;  ///< whether both clocks were read within 1 us
};

Instant ReadBoth() noexcept {
  Instant now{Clock::now(), ReadTicks()};
  now.is_exact = Clock::now() - now.time < std::chrono::microseconds(1);
  return now;
}

Instant ReadBothExactly() noexcept {
  constexpr int kAttempts = 20;
  Instant now;
  for (int attempt = 0; attempt < kAttempts && !now.is_exact; ++attempt) now = ReadBoth();
  return now;
}

/// Returns the number of ticks per nanosecond; 0 if unknown, as in the first 10 ms after the first call.
double TicksPerNanosecond() noexcept {
  constexpr auto kLeast = std::chrono::milliseconds(10);
  static const Instant begin = ReadBothExactly();
  static std::atomic<double> known{0};
  double rate = known.load(std::memory_order_relaxed);
  if (rate > 0) return rate;
  const Instant now = ReadBoth();
  if (!now.is_exact || now.time - begin.time < kLeast) return 0;
  const std::chrono::duration<double, std::nano> passed = now.time - begin.time;
  rate = static_cast<double>(now.ticks - begin.ticks) / passed.count();
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

double NanosecondsOf(std::uint64_t ticks) noexcept {
  const double rate = ticks == 0 ? 0 : TicksPerNanosecond();
  return rate > 0 ? static_cast<double>(ticks) / rate : std::numeric_limits<double>::quiet_NaN();
}

void CoreDistance::Note(double ns) noexcept {
  if (std::isnan(ns) || ns < kOwnCacheNs || ns > kInterruptedNs) return;
  const int balance =
      std::clamp(balance_.load(std::memory_order_relaxed) + (ns < kFarNs ? -1 : 1), -kEnough, kEnough);
  balance_.store(balance, std::memory_order_relaxed);
  if (balance == kEnough) is_far_.store(true, std::memory_order_relaxed);
  if (balance == -kEnough) is_far_.store(false, std::memory_order_relaxed);
}

}  // namespace warren
