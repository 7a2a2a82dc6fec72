// Waiting without wasting a core: spin for a moment when every rank has a core of its own, then give the core
// away again and again, then sleep until something happens. Every sleep ends after a while to look whether
// the others are still alive, so that nothing waits for ever for the dead.
#pragma once

#include <chrono>

#include "rabit_engine/transport/transport.h"

namespace warren {

/// Lets the other hardware thread of the core go first, for a few cycles.
inline void RelaxCore() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Giving the core away by yielding, as long as that is the quickest way to wait. Among ranks that all wait
/// for each other it is: a turn takes a microsecond or so. But a process that computes keeps the core for a
/// whole time slice when it is given it, while a sleeper gets the core back as soon as it is woken. So after
/// turns that took long the next waits go to sleep at once; the more of them, the longer it lasts.
class Yielding {
 public:
  void Begin() { turns_ = 0; }
  /// One turn. Returns false, without a turn, when it is time to sleep.
  bool Turn();

 private:
  Clock::time_point begin_;
  Clock::time_point last_;
  int turns_ = 0;
  int sleep_at_once_ = 0;
  int penalty_ = 0;
  int good_turns_ = 0;
};

/// The phases of a wait: asks `ready()` while it spins (if it may) and yields; then calls `sleep()`, which
/// sleeps for a while and may throw what makes waiting any longer pointless, as often as needed. For waits
/// that have just found that nothing is ready.
template <typename Ready, typename Sleep>
void WaitInPhases(bool may_spin, Yielding& yielding, Ready&& ready, Sleep&& sleep) {
  /// A peer on a core of its own answers within microseconds, or it is busy with something longer.
  constexpr auto kSpin = std::chrono::microseconds(20);
  constexpr int kTurnsPerLook = 16;
  if (may_spin) {
    const Clock::time_point begin = Clock::now();
    do {
      for (int turn = 0; turn < kTurnsPerLook; ++turn) {
        RelaxCore();
        if (ready()) return;
      }
    } while (Clock::now() - begin < kSpin);
  }
  yielding.Begin();
  while (yielding.Turn()) {
    if (ready()) return;
  }
  do {
    sleep();
  } while (!ready());
}

/// How long a sleeper may overlook a death; for anything else it is woken.
inline constexpr auto kLookAround = std::chrono::milliseconds(20);

}  // namespace warren
