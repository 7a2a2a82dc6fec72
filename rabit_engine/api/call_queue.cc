#include "rabit_engine/api/call_queue.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

namespace warren::api {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

// After an operation the thread looks for the next one so often, for so long: whoever gives it need not wake
// the thread, which takes as long as a small operation, and may run it himself.
constexpr microseconds kPause{20};
constexpr microseconds kAttentive{1'000};
// Then it sleeps until it is woken, and ends when there was nothing for so long.
constexpr std::chrono::seconds kIdle{5};

/// In a thread that runs operations.
thread_local const CallQueue* current = nullptr;

}  // namespace

bool PendingCall::HasEnded() const {
  const std::lock_guard lock(queue_->mutex_);
  return has_ended_;
}

void PendingCall::Wait() {
  CallQueue::Lock lock(queue_->mutex_);
  queue_->HelpUntil(lock, [this] { return has_ended_; });
  if (error_) std::rethrow_exception(error_);
}

void PendingCall::WhenEnded(std::function<void(const std::exception_ptr& error)> function) {
  {
    const std::lock_guard lock(queue_->mutex_);
    if (!has_ended_) {
      when_ended_ = std::move(function);
      return;
    }
  }
  function(error_);  // which changes no more
}

std::shared_ptr<PendingCall> CallQueue::Add(std::function<void()> work) {
  std::shared_ptr<PendingCall> operation(new PendingCall(shared_from_this(), std::move(work)));
  const Lock lock(mutex_);
  waiting_.push_back(operation);
  if (!has_thread_) {
    has_thread_ = true;
    // Signals are for the threads of the program.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([self = shared_from_this()] { self->Serve(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } else if (is_asleep_) {
    added_.notify_one();
  }
  return operation;
}

void CallQueue::Drain() {
  if (current == this) return;
  Lock lock(mutex_);
  HelpUntil(lock, [this] { return waiting_.empty() && !is_running_; });
}

template <typename Reached>
void CallQueue::HelpUntil(Lock& lock, Reached&& reached) {
  while (!reached()) {
    if (!is_running_ && !waiting_.empty()) {
      RunFirst(lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void CallQueue::RunFirst(Lock& lock) {
  const std::shared_ptr<PendingCall> operation = std::move(waiting_.front());
  waiting_.pop_front();
  is_running_ = true;
  std::function<void()> work = std::move(operation->work_);
  lock.unlock();
  std::exception_ptr error;
  const CallQueue* const before = std::exchange(current, this);
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  work = nullptr;  // what it held is free before anybody hears of the end
  current = before;
  lock.lock();
  is_running_ = false;
  operation->error_ = std::move(error);
  operation->has_ended_ = true;
  changed_.notify_all();
  if (const auto function = std::move(operation->when_ended_)) {
    lock.unlock();
    function(operation->error_);
    lock.lock();
  }
}

/// The thread's life. Who waits for an operation runs it himself; this one takes what nobody waits for.
void CallQueue::Serve() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  Lock lock(mutex_);
  Clock::time_point last = Clock::now();
  for (;;) {
    if (!waiting_.empty() && !is_running_) {
      RunFirst(lock);
      last = Clock::now();
      continue;
    }
    if (Clock::now() - last < kAttentive) {
      added_.wait_for(lock, kPause);
      continue;
    }
    is_asleep_ = true;
    const bool called = added_.wait_for(lock, kIdle, [this] { return !waiting_.empty(); });
    is_asleep_ = false;
    if (!called) break;
    // Who runs one now will run those behind it or leave them to this thread.
    if (is_running_) changed_.wait(lock);
    last = Clock::now();
  }
  has_thread_ = false;
}

}  // namespace warren::api
