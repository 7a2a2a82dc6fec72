// The event with which the ranks on a host wake a process that sleeps on descriptors (ShmTransport::Sleep).
//
// A process has one doorbell for all of its communicators: several of its threads may sleep on it, each in a
// different communicator. A ring may be meant for any of them, and the first thread that wakes consumes it.
// That thread therefore wakes the other sleeping threads.
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
  /// Wakes the threads that sleep on this doorbell. May be called from any process; makes a system call.
  void Ring() const noexcept;

  /// Lets one thread sleep on the doorbell. Not thread-safe, but several seats may exist.
  class Seat {
   public:
    explicit Seat(std::shared_ptr<Doorbell> doorbell);
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    /// Sleeps until the bell rings, `other_descriptor` is readable (-1 for none), or the limit has passed;
    /// may return spuriously. `arm()` requests rings from other processes and returns whether there is still
    /// nothing to do; after it has been called, no ring is missed.
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
    /// Signaled by other threads of this process; created once there are several seats.
    CloseOnForkDescriptor nudge_;
  };

 private:
  CloseOnForkDescriptor event_;
  std::atomic<int> seats_ = 0;
  std::mutex mutex_;
  std::vector<int> asleep_;  ///< the nudge_ descriptors of sleeping threads, if there are several seats
};

}  // namespace warren
