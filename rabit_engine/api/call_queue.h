// The asynchronous operations of one communicator. They run one after another, in the order in which they
// were added: on the queue's thread, or on a thread that waits for one of them. The latter saves two thread
// switches, which matters for small operations.
//
// Each communicator has its own thread, which lives while there is work and for a short time after. One
// thread for several communicators could deadlock: a collective waits for other ranks, which may have started
// the operations of two communicators in a different order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/base/descriptor.h"

namespace warren::api {

class CallQueue;

/// An operation in the queue. If no thread can be started for the queue, HasEnded runs the queue's operations
/// up to this one.
class QueuedCall final : public PendingCall {
 public:
  bool HasEnded() override;
  void Wait() override;
  void WhenEnded(std::function<void(const std::exception_ptr& error)> function) override;

 private:
  friend class CallQueue;
  QueuedCall(std::shared_ptr<CallQueue> queue, std::function<void()> work)
      : queue_(std::move(queue)), work_(std::move(work)) {}

  // All members are guarded by the queue's mutex.
  std::shared_ptr<CallQueue> queue_;
  std::function<void()> work_;
  bool has_ended_ = false;
  std::exception_ptr error_;
  std::function<void(const std::exception_ptr&)> when_ended_;
};

/// Thread-safe.
class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  /// Adds `work`, which is called once, after all work added before it, and then destroyed.
  std::shared_ptr<QueuedCall> Add(std::function<void()> work);
  /// Waits until the queue is empty and no operation is running; meanwhile, runs queued operations. Returns
  /// immediately if called from within an operation of this queue or in a forked process.
  void Drain();
  /// Ends the thread once it has run the remaining operations. No operation may be added after this call.
  void Close();

 private:
  friend class QueuedCall;
  using Lock = std::unique_lock<std::mutex>;

  void StartThread();
  void RequireNoFork() const;
  void RunFirst(Lock& lock);
  template <typename Reached>
  void HelpUntil(Lock& lock, Reached&& reached);
  void Serve();

  std::mutex mutex_;
  std::condition_variable changed_;  ///< an operation has ended
  std::condition_variable added_;
  std::deque<std::shared_ptr<QueuedCall>> waiting_;
  bool is_running_ = false;  ///< some thread is running an operation
  bool has_thread_ = false;
  bool has_said_so_ = false;  ///< has reported that no thread can be started
  bool is_closed_ = false;
  const std::uint64_t num_forks_ = NumForks();  ///< NumForks() in the process that owns the queue
  bool is_to_be_woken_ = false;                 ///< the thread sleeps until notified; else it polls
  bool waiters_run_ = false;                    ///< the last operation was run by a waiting thread
  std::chrono::steady_clock::time_point last_added_;
};

}  // namespace warren::api
