// Waiting without wasting a core: spin briefly if every rank has its own core, then yield repeatedly, then
// sleep until something happens. Every sleep is limited, so that the rank can check whether the others are
// still alive.
#pragma once

#include <sched.h>

#include <chrono>

#include "rabit_engine/transport/transport.h"

namespace warren {

/// Leaves the core to the other hardware thread for a few cycles.
inline void RelaxCore() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The core of the awaited rank, if known.
enum class PeerCore {
  kOther,   ///< on another core, or unknown while each rank has its own core
  kThis,    ///< on the same core, though there are enough cores
  kCrowded  ///< there are more ranks than cores, or spinning is not allowed
};

/// The first phase of a wait.
enum class WaitPhase { kSpin, kYield, kSleep };

/// Decides, from the course of recent waits, how to wait next. The caller reports the course of each wait.
/// Not thread-safe.
///
/// Spinning is the quickest way to wait for a rank on another core. But two ranks may share a core although
/// other cores are idle: the kernel leaves them there while they take turns. In that case, the waiting rank
/// sleeps, because the kernel moves a woken thread to an idle core. If no core is idle, such sleeps become
/// less and less frequent. If the core of the peer is unknown, an answer right after an unsuccessful spin
/// shows that the ranks share a core. (Setting affinity masks would separate the ranks reliably, but a rank
/// bound to a core where another process computes would wait for whole time slices.)
///
/// Yielding is quick among ranks that all wait for each other: a turn takes about a microsecond. But a
/// process that computes keeps the core for a whole time slice, while a sleeping rank gets the core back as
/// soon as it is woken. So after a long turn, the next wait sleeps immediately; each long turn that soon
/// follows another doubles the number of such waits.
class WaitPolicy {
 public:
  WaitPhase Begin(PeerCore peer);
  void SpunWell();
  void SpunInVain() { spun_in_vain_ = true; }
  /// Returns whether to yield once more; if false, the rank should sleep.
  bool MayYield(Clock::time_point now);
  void Yielded(Clock::time_point now);
  /// Reports that the wait has ended after yielding.
  void YieldedWell();

 private:
  Clock::time_point begin_;  ///< start of the first turn of yielding in this wait
  Clock::time_point turn_;   ///< start of the current turn
  int turns_ = 0;
  int sleep_at_once_ = 0;
  int penalty_ = 0;
  int good_turns_ = 0;
  int without_spinning_ = 0;  ///< the number of upcoming waits that skip spinning
  int vain_spins_ = 0;
  int without_parting_ = 0;  ///< the number of upcoming waits on a shared core that do not begin by sleeping
  int vain_partings_ = 0;
  bool spun_in_vain_ = false;
};

/// Runs the phases of a wait: calls `ready()` while it spins (if that may help) and yields, then calls
/// `sleep()` until `ready()` returns true. `sleep()` sleeps for a limited time and throws if waiting any
/// longer is pointless. Call it only if `ready()` has just returned false.
template <typename Ready, typename Sleep>
void WaitInPhases(PeerCore peer, WaitPolicy& policy, Ready&& ready, Sleep&& sleep) {
  /// The duration of spinning. A peer with its own core either answers within microseconds or is busy for
  /// much longer.
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

/// The limit of one sleep of a rank that waits in shared memory. It determines how soon the rank notices a
/// dead rank; other events wake it.
inline constexpr auto kLookAround = std::chrono::milliseconds(20);

}  // namespace warren
