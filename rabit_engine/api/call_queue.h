// Operations of one communicator that nobody waits for yet. They are run one after the other, in the order in
// which they were given: by a thread of their own, or by whoever waits for one of them first. Without that
// second way a small operation that is waited for at once would cost two switches between threads.
//
// Each communicator has a thread, while there is something to do and for a short time after, since a
// collective waits for other ranks: those may have given the operations of two communicators in another
// order.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace warren::api {

class CallQueue;

/// One that was given. Thread safe.
class PendingCall {
 public:
  /// Whether it has ended, well or not.
  bool HasEnded() const;
  /// Returns when it has ended; runs it, and those before it, if nobody does. Throws its error.
  void Wait();
  /// Calls the function when it has ended, with its error or nullptr, at once if it has; from any thread. The
  /// function must neither throw nor wait for operations.
  void WhenEnded(std::function<void(const std::exception_ptr& error)> function);

 private:
  friend class CallQueue;
  PendingCall(std::shared_ptr<CallQueue> queue, std::function<void()> work)
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
  std::shared_ptr<PendingCall> Add(std::function<void()> work);
  /// Returns when there is none left; runs those that nobody runs. In an operation itself: at once.
  void Drain();

 private:
  friend class PendingCall;
  using Lock = std::unique_lock<std::mutex>;

  void RunFirst(Lock& lock);
  template <typename Reached>
  void HelpUntil(Lock& lock, Reached&& reached);
  void Serve();

  std::mutex mutex_;
  std::condition_variable changed_;  ///< an operation has ended
  std::condition_variable added_;
  std::deque<std::shared_ptr<PendingCall>> waiting_;
  bool is_running_ = false;  ///< somebody runs one
  bool has_thread_ = false;  ///< which looks again before long, or sleeps until it is called:
  bool is_asleep_ = false;
};

}  // namespace warren::api
