// Waiting for another rank of the host: spin for a moment when every rank has a core of its own, then give
// the core away again and again, then sleep on the other's bell. Every sleep ends after a while to look
// whether the others are still alive, so that nothing here waits for ever for the dead.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rabit_engine/transport/shm/host_segment.h"
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

class Waiter {
 public:
  explicit Waiter(HostSegment& segment) : segment_(segment) {}

  /// When waiting throws TimedOut.
  void set_deadline(Clock::time_point deadline) { deadline_ = deadline; }

  /// Who looks around while this rank sleeps; nobody by default.
  void SetLookout(Lookout* lookout) { lookout_ = lookout; }

  /// Returns when `ready()` is true, which must depend on what member `local` stores before it rings its
  /// bell. Throws LostPeer, TimedOut, or what the lookout throws.
  template <typename Ready>
  void Until(int local, Ready&& ready) {
    if (ready()) [[likely]] {
      return;
    }
    std::optional<Sleeper> sleeper;
    std::optional<Clock::time_point> begin;
    WaitInPhases(segment_.MayAnswerWhileSpinning(local), yielding_, ready, [&] {
      if (!sleeper) {
        sleeper.emplace(segment_.lines(local).sleepers);
        begin = Clock::now();
      }
      const std::uint32_t bell = segment_.lines(local).bell.load(std::memory_order_seq_cst);
      if (ready()) return;
      Sleep(local, bell);
      const std::vector<int> lost = segment_.FindLost();
      // Asked last: whoever is through the call may have left before this rank looked.
      if (!ready()) LookAround(local, lost, Clock::now() - *begin);
    });
  }

  /// For those who wait in another way: throws what Until would throw.
  void ThrowIfAborted();
  [[noreturn]] void ThrowLost(int rank);
  void ThrowIfLate(int awaited_rank, Clock::duration waited);

 private:
  /// Counts itself among those whom a bell must wake.
  class Sleeper {
   public:
    explicit Sleeper(std::atomic<std::uint32_t>& count) : count_(count) {
      count_.fetch_add(1);
      // What is read after it must not be older: else a bell might ring between the two unheard.
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~Sleeper() { count_.fetch_sub(1); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

   private:
    std::atomic<std::uint32_t>& count_;
  };

  void Sleep(int local, std::uint32_t bell);
  void LookAround(int awaited, const std::vector<int>& lost, Clock::duration waited);

  HostSegment& segment_;
  Lookout* lookout_ = nullptr;
  Yielding yielding_;
  Clock::time_point deadline_ = kNoDeadline;
};

}  // namespace warren
