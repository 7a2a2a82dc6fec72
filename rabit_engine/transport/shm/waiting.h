// Waiting for another rank of the host: spin for a moment when every rank has a core of its own, then give
// the core away again and again, then sleep on the other's bell. Every sleep ends after a while to look
// whether the others are still alive, so that nothing here waits for ever for the dead.
#pragma once

#include <cstdint>
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

class Waiter {
 public:
  explicit Waiter(HostSegment& segment) : segment_(segment) {}

  /// When waiting throws TimedOut.
  void set_deadline(Clock::time_point deadline) { deadline_ = deadline; }

  /// Returns when `ready()` is true, which must depend on what member `local` stores before it rings its
  /// bell. `check()` is called now and then while it is not, and may throw. Throws LostPeer or TimedOut.
  template <typename Ready, typename Check>
  void Until(int local, Ready&& ready, Check&& check) {
    if (ready()) [[likely]] {
      return;
    }
    if (segment_.MayAnswerWhileSpinning(local)) {
      const Clock::time_point begin = Clock::now();
      do {
        for (int turn = 0; turn < kTurnsPerLook; ++turn) {
          RelaxCore();
          if (ready()) return;
        }
      } while (Clock::now() - begin < kSpin);
    }
    yielding_.Begin();
    while (yielding_.Turn()) {
      if (ready()) return;
    }
    const Sleeper sleeper(segment_.lines(local).sleepers);
    while (true) {
      const std::uint32_t bell = segment_.lines(local).bell.load(std::memory_order_seq_cst);
      if (ready()) return;
      Sleep(local, bell);
      const std::vector<int> lost = segment_.FindLost();
      // Asked last: whoever is through the call may have left before this rank looked.
      if (ready()) return;
      ThrowIfAborted();
      if (!lost.empty()) ThrowLost(lost.front());
      ThrowIfLate(segment_.ranks()[local]);
      check();
    }
  }

  /// For those who wait in another way: throws what Until would throw.
  void ThrowIfAborted();
  [[noreturn]] void ThrowLost(int rank);
  void ThrowIfLate(int awaited_rank);

 private:
  /// A peer on a core of its own answers within microseconds, or it is busy with something longer.
  static constexpr auto kSpin = std::chrono::microseconds(20);
  static constexpr int kTurnsPerLook = 16;

  /// Counts itself among those whom a bell must wake.
  class Sleeper {
   public:
    explicit Sleeper(std::atomic<std::uint32_t>& count) : count_(count) { count_.fetch_add(1); }
    ~Sleeper() { count_.fetch_sub(1); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

   private:
    std::atomic<std::uint32_t>& count_;
  };

  void Sleep(int local, std::uint32_t bell);

  HostSegment& segment_;
  Yielding yielding_;
  Clock::time_point deadline_ = kNoDeadline;
};

}  // namespace warren
