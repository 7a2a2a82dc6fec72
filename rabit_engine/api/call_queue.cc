#include "rabit_engine/api/call_queue.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "posix/shortage.h"
#include "posix/thread.h"
#include "rabit_engine/api/forced_unwind.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/say.h"

namespace warren::api {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

// Waking the queue's thread takes as long as a small operation. If callers wait for each operation as soon as
// they have added it, the waiting threads run the operations, and the queue's thread only polls at this
// interval, for operations that no caller waits for.
constexpr microseconds kSeldom{1'000};
// If the queue's thread ran the last operation, it polls every kOften until kAttentive has passed since the
// last addition, and then sleeps until it is notified.
constexpr microseconds kOften{20};
constexpr microseconds kAttentive{1'000};
// The queue's thread ends if nothing has been added for this long and the queue is empty.
constexpr std::chrono::seconds kIdle{5};

/// The queue whose operation this thread is running, if any.
thread_local const CallQueue* running_queue = nullptr;

}  // namespace

bool QueuedCall::HasEnded() {
  queue_->RequireNoFork();
  CallQueue::Lock lock(queue_->mutex_);
  if (!queue_->has_thread_) queue_->HelpUntil(lock, [this] { return has_ended_ || queue_->is_running_; });
  return has_ended_;
}

void QueuedCall::Wait() {
  queue_->RequireNoFork();
  CallQueue::Lock lock(queue_->mutex_);
  queue_->HelpUntil(lock, [this] { return has_ended_; });
  if (error_) std::rethrow_exception(error_);
}

void QueuedCall::WhenEnded(std::function<void(const std::exception_ptr& error)> function) {
  {
    const std::lock_guard lock(queue_->mutex_);
    if (!has_ended_) {
      when_ended_ = std::move(function);
      return;
    }
  }
  function(error_);  // constant once the operation has ended
}

std::shared_ptr<QueuedCall> CallQueue::Add(std::function<void()> work) {
  std::shared_ptr<QueuedCall> operation(new QueuedCall(shared_from_this(), std::move(work)));
  const Lock lock(mutex_);
  waiting_.push_back(operation);
  last_added_ = Clock::now();
  if (!has_thread_) {
    StartThread();
  } else if (is_to_be_woken_) {
    added_.notify_one();
  }
  return operation;
}

/// If no thread can be started, the operations run in Wait, Drain and HasEnded.
void CallQueue::StartThread() {
  const posix::SignalsBlocked blocked;  // also in the new thread: signals are for the program's threads
  try {
    std::thread([self = shared_from_this()] { self->Serve(); }).detach();
    has_thread_ = true;
  } catch (const std::system_error& error) {
    has_thread_ = false;
    if (!std::exchange(has_said_so_, true)) {
      Say("rabit: no thread can be started to run calls in the background; they run when they are waited for. {}: {}",
          error.what(), posix::ShortageAdvice(error.code().value()));
    }
  }
}

void CallQueue::RequireNoFork() const {
  if (NumForks() == num_forks_) return;
  throw Misuse("the parent process began this call before it forked: wait for it in the parent");
}

void CallQueue::Close() {
  if (NumForks() != num_forks_) return;
  const Lock lock(mutex_);
  is_closed_ = true;
  added_.notify_one();
}

void CallQueue::Drain() {
  if (running_queue == this || NumForks() != num_forks_) return;
  Lock lock(mutex_);
  HelpUntil(lock, [this] { return waiting_.empty() && !is_running_; });
}

template <typename Reached>
void CallQueue::HelpUntil(Lock& lock, Reached&& reached) {
  while (!reached()) {
    if (!is_running_ && !waiting_.empty()) {
      waiters_run_ = true;
      RunFirst(lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void CallQueue::RunFirst(Lock& lock) {
  const std::shared_ptr<QueuedCall> operation = std::move(waiting_.front());
  waiting_.pop_front();
  is_running_ = true;
  // std::exchange, because in libc++ a small function keeps its target after a move.
  std::function<void()> work = std::exchange(operation->work_, nullptr);
  lock.unlock();
  std::exception_ptr error;
  const CallQueue* const before = std::exchange(running_queue, this);
  try {
    work();
  } catch (const ForcedUnwind&) {
    // The thread is being terminated: as Python exits, it terminates threads that call into it.
    lock.lock();
    is_running_ = false;
    operation->error_ = std::make_exception_ptr(EngineError("the thread that ran this call was ended"));
    operation->has_ended_ = true;
    changed_.notify_all();
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  work = nullptr;  // release its captures before any thread sees that the operation has ended
  running_queue = before;
  lock.lock();
  is_running_ = false;
  operation->error_ = std::move(error);
  operation->has_ended_ = true;
  changed_.notify_all();
  if (const auto function = std::exchange(operation->when_ended_, nullptr)) {
    lock.unlock();
    function(operation->error_);
    lock.lock();
  }
}

/// The thread's main loop: runs operations while no other thread runs one.
void CallQueue::Serve() {
  posix::WakePromptly();
  Lock lock(mutex_);
  for (;;) {
    if (!waiting_.empty() && !is_running_) {
      waiters_run_ = false;
      RunFirst(lock);
      continue;
    }
    const Clock::duration idle = Clock::now() - last_added_;
    if ((idle > kIdle || is_closed_) && waiting_.empty()) break;
    is_to_be_woken_ = !waiters_run_ && !is_running_ && idle > kAttentive;
    if (is_to_be_woken_) {
      added_.wait_for(lock, kIdle);
    } else {
      added_.wait_for(lock, waiters_run_ ? kSeldom : kOften);
    }
    is_to_be_woken_ = false;
  }
  has_thread_ = false;
}

}  // namespace warren::api
