// The event by which the ranks of a host wake a process that sleeps on descriptors (ShmTransport::Sleep).
//
// A process has one, however many communicators: several of its threads may sleep on it, each for a
// communicator of its own. A ring is for one of them and whoever hears it first takes it away, so that one
// passes it on to the others that sleep.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rabit_engine/base/descriptor.h"

namespace warren {

class Doorbell {
 public:
  explicit Doorbell(CloseOnForkDescriptor event) : event_(std::move(event)) {}

  int fd() const { return event_.fd(); }
  /// Wakes who sleeps on it. Of any process; a system call.
  void Ring() const noexcept;

  /// One thread's way to sleep on it. Not thread safe, but several may exist.
  class Seat {
   public:
    explicit Seat(std::shared_ptr<Doorbell> doorbell);
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    /// Sleeps until the bell rings, `other_descriptor` (-1: none) is readable, or the limit; at times for no
    /// reason at all. `arm()` makes others ring from now on, and says whether there is still nothing to do:
    /// called when no ring can be missed any more.
    template <typename Arm>
    void Sleep(int other_descriptor, std::chrono::milliseconds limit, Arm&& arm) {
      const bool alone = Begin();
      if (arm()) Poll(other_descriptor, limit);
      End(alone);
    }

   private:
    bool Begin();
    void Poll(int other_descriptor, std::chrono::milliseconds limit);
    void End(bool alone);

    std::shared_ptr<Doorbell> doorbell_;
    CloseOnForkDescriptor nudge_;  ///< rung by other threads of this process; made when there are any
  };

 private:
  CloseOnForkDescriptor event_;
  std::atomic<int> seats_ = 0;
  std::mutex mutex_;
  std::vector<int> asleep_;  ///< the nudges of those who sleep where there are several seats
};

}  // namespace warren
