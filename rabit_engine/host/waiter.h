// Waits for another rank on the host, in the phases of transport/waiting.h. In the last phase, this rank
// sleeps on the other rank's bell (RankLines::bell).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/transport/waiting.h"

namespace warren {

class Waiter {
 public:
  explicit Waiter(HostSegment& segment) : segment_(segment) {}

  /// Sets the time after which waiting throws TimedOut.
  void set_deadline(Clock::time_point deadline) { deadline_ = deadline; }

  /// Sets the observer that is called after each sleep; none by default.
  void SetWaitObserver(WaitObserver* observer) { wait_observer_ = observer; }

  /// Returns when `ready()` is true. `ready()` must depend on data that member `local` stores before it rings
  /// its bell. Throws LostPeer, TimedOut, or what the observer throws.
  template <typename Ready>
  void Until(int local, Ready&& ready) {
    if (ready()) [[likely]] {
      return;
    }
    std::optional<Sleeper> sleeper;
    std::optional<Clock::time_point> begin;
    WaitInPhases(segment_.CoreOf(local), wait_policy_, ready, [&] {
      if (!sleeper) {
        sleeper.emplace(segment_.lines(local).sleepers);
        begin = Clock::now();
      }
      const std::uint32_t bell = segment_.lines(local).bell.load(std::memory_order_seq_cst);
      if (ready()) return;
      Sleep(local, bell);
      segment_.SayCore();
      const std::vector<int> lost = segment_.FindLost();
      const bool has_left = segment_.HasLeft(local);
      // ready() is checked last, because a rank may leave as soon as it has finished the call.
      const Clock::time_point looked = Clock::now();
      if (!ready()) CheckPeers(local, lost, has_left, *begin, looked);
    });
  }

  /// For callers that wait in another way: each throws an error that Until may throw.
  void ThrowIfAborted();
  [[noreturn]] void ThrowLost(int rank);
  [[noreturn]] void ThrowLeft(int local);
  void ThrowIfLate(WaitObserver* observer, std::span<const Interest> awaited, Clock::time_point begin);

 private:
  /// Counts this thread among the threads that a bell must wake.
  class Sleeper {
   public:
    explicit Sleeper(std::atomic<std::uint32_t>& count) : count_(count) {
      count_.fetch_add(1);
      // The bell must be read after the increment, or a ring between the two would be missed.
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~Sleeper() { count_.fetch_sub(1); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

   private:
    std::atomic<std::uint32_t>& count_;
  };

  void Sleep(int local, std::uint32_t bell);
  void CheckPeers(int awaited, const std::vector<int>& lost, bool has_left, Clock::time_point begin,
                  Clock::time_point looked);

  HostSegment& segment_;
  WaitObserver* wait_observer_ = nullptr;
  WaitPolicy wait_policy_;
  Clock::time_point deadline_ = kNoDeadline;
};

}  // namespace warren
