// Waiting without wasting a core: spin for a moment when every rank has a core of its own, then give the core
// away again and again, then sleep until something happens. Every sleep ends after a while to look whether
// the others are still alive, so that nothing waits for ever for the dead.
#pragma once

#include <sched.h>

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

/// Where the rank that is waited for runs, as far as known.
enum class PeerCore {
  kOther,   ///< on another core
  kThis,    ///< on this very core, though there are cores enough
  kCrowded  ///< there are more ranks than cores, or nothing is known
};

/// How a wait begins.
enum class WaitPhase { kSpin, kYield, kSleep };

/// What a rank has learnt from its last waits: a state machine that is told what happened, and when.
///
/// Spinning is the quickest way to wait for a rank on another core. But two ranks may find themselves on one
/// core though others are idle: the kernel leaves them there for as long as they take turns. Then one of them
/// sleeps, because who wakes is given an idle core; if there is none, it is tried again ever more seldom.
/// Where nobody says which core the peer is on, an answer that comes as soon as a vain spinning has ended
/// says it. (To move by an affinity mask would be surer and worse: on a core where something else computes a
/// rank waits for whole time slices.)
///
/// Giving the core away by yielding is quick among ranks that all wait for each other: a turn takes a
/// microsecond or so. But a process that computes keeps the core for a whole time slice when it is given it,
/// while a sleeper gets the core back as soon as it is woken. So after turns that took long the next waits go
/// to sleep at once; the more of them, the longer it lasts.
class WaitPolicy {
 public:
  WaitPhase Begin(PeerCore peer);
  void SpunWell();
  void SpunInVain() { spun_in_vain_ = true; }
  /// Whether a turn of yielding comes now; else it is time to sleep.
  bool MayYield(Clock::time_point now);
  void Yielded(Clock::time_point now);
  /// The wait has ended after a turn.
  void YieldedWell();

 private:
  Clock::time_point begin_;  ///< of the first turn
  Clock::time_point turn_;   ///< of this one
  int turns_ = 0;
  int sleep_at_once_ = 0;
  int penalty_ = 0;
  int good_turns_ = 0;
  int without_spinning_ = 0;  ///< so many more waits
  int vain_spins_ = 0;
  int without_parting_ = 0;  ///< so many more waits on one core
  int vain_partings_ = 0;
  bool spun_in_vain_ = false;
};

/// The phases of a wait: asks `ready()` while it spins (if that may help) and yields; then calls `sleep()`,
/// which sleeps for a while and may throw what makes waiting any longer pointless, as often as needed. For
/// waits that have just found that nothing is ready.
template <typename Ready, typename Sleep>
void WaitInPhases(PeerCore peer, WaitPolicy& policy, Ready&& ready, Sleep&& sleep) {
  /// A peer on a core of its own answers within microseconds, or it is busy with something longer.
  constexpr auto kSpin = std::chrono::microseconds(20);
  constexpr int kTurnsPerLook = 16;
  const WaitPhase first = policy.Begin(peer);
  if (first == WaitPhase::kSpin) {
    const Clock::time_point begin = Clock::now();
    do {
      for (int turn = 0; turn < kTurnsPerLook; ++turn) {
        RelaxCore();
        if (ready()) return policy.SpunWell();
      }
    } while (Clock::now() - begin < kSpin);
    policy.SpunInVain();
  }
  if (first != WaitPhase::kSleep) {
    for (Clock::time_point now = Clock::now(); policy.MayYield(now);) {
      sched_yield();
      policy.Yielded(now = Clock::now());
      if (ready()) return policy.YieldedWell();
    }
  }
  do {
    sleep();
  } while (!ready());
}

/// How long a sleeper may overlook a death; for anything else it is woken.
inline constexpr auto kLookAround = std::chrono::milliseconds(20);

}  // namespace warren
