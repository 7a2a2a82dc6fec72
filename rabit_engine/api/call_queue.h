// Operations of one communicator that nobody waits for yet. They are run one after the other, in the order in
// which they were given: by a thread of their own, or by whoever waits for one of them first. Without that
// second way a small operation that is waited for at once would cost two switches between threads.
//
// Each communicator has a thread, while there is something to do and for a short time after, since a
// collective waits for other ranks: those may have given the operations of two communicators in another
// order.
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

/// One that was given. Where there can be no thread, it is run by who asks for it.
class QueuedCall final : public PendingCall {
 public:
  bool HasEnded() override;
  void Wait() override;
  void WhenEnded(std::function<void(const std::exception_ptr& error)> function) override;

 private:
  friend class CallQueue;
  QueuedCall(std::shared_ptr<CallQueue> queue, std::function<void()> work)
      : queue_(std::move(queue)), work_(std::move(work)) {}

  // All under the queue's mutex.
  std::shared_ptr<CallQueue> queue_;
  std::function<void()> work_;
  bool has_ended_ = false;
  std::exception_ptr error_;
  std::function<void(const std::exception_ptr&)> when_ended_;
};

/// Thread safe.
class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  /// `work` is called once, after all that were added before, and then destroyed.
  std::shared_ptr<QueuedCall> Add(std::function<void()> work);
  /// Returns when there is none left; runs those that nobody runs. In an operation itself: at once.
  void Drain();
  /// None will be added any more: the thread ends when it has run those that are there.
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
  bool is_running_ = false;  ///< somebody runs one
  bool has_thread_ = false;
  bool has_said_so_ = false;  ///< the missing thread was reported
  bool is_closed_ = false;
  const std::uint64_t num_forks_ = NumForks();  ///< of the process that it is of
  bool is_to_be_woken_ = false;                 ///< the thread; else it looks by itself before long
  bool waiters_run_ = false;                    ///< the last one was run by who waited for it
  std::chrono::steady_clock::time_point last_added_;
};

}  // namespace warren::api
