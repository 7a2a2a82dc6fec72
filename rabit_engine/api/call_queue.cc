#include "rabit_engine/api/call_queue.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
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

// Waking the thread takes as long as a small operation. Where operations are waited for at once, who waits
// runs them, and is not disturbed: the thread looks in so seldom, for one that is not.
constexpr microseconds kSeldom{1'000};
// Where it was the thread that ran the last one, it looks so often for so long, and is woken after that.
constexpr microseconds kOften{20};
constexpr microseconds kAttentive{1'000};
// It ends when there was nothing for so long.
constexpr std::chrono::seconds kIdle{5};

/// In a thread that runs operations.
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
  function(error_);  // which changes no more
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

/// Where there can be none, who waits runs what there is.
void CallQueue::StartThread() {
  // Signals are for the threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([self = shared_from_this()] { self->Serve(); }).detach();
    has_thread_ = true;
  } catch (const std::system_error& error) {
    has_thread_ = false;
    if (!std::exchange(has_said_so_, true)) {
      Say("rabit: no thread can be started for calls that nobody waits for yet; they run when they are "
          "waited "
          "for. {}: {}",
          error.what(), posix::ShortageAdvice(error.code().value()));
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CallQueue::RequireNoFork() const {
  if (NumForks() == num_forks_) return;
  throw Misuse(
      "a call that this process's parent began, before it forked, is the parent's: wait for it there");
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
  // exchange: in libc++ a small function that was moved from still holds what it held.
  std::function<void()> work = std::exchange(operation->work_, nullptr);
  lock.unlock();
  std::exception_ptr error;
  const CallQueue* const before = std::exchange(running_queue, this);
  try {
    work();
  } catch (const ForcedUnwind&) {
    // The thread is being ended, as Python ends those that are in its functions when it exits.
    lock.lock();
    is_running_ = false;
    operation->error_ = std::make_exception_ptr(EngineError("the thread was ended that carried this out"));
    operation->has_ended_ = true;
    changed_.notify_all();
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  work = nullptr;  // what it held is free before anybody hears of the end
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

/// The thread's life: it takes what nobody waits for.
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
