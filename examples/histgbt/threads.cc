#include "examples/histgbt/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "posix/cores.h"

namespace warren::histgbt {
namespace {

int Cores() {
  return std::max(1, static_cast<int>(posix::OwnCores().size()));
}

/// Number of ranges per thread. There are several, so that other threads can take over from a delayed one.
constexpr std::size_t kRangesPerThread = 4;

}  // namespace

Threads::Threads(int threads) {
  const int count = threads > 0 ? threads : Cores();
  try {
    for (int thread = 1; thread < count; ++thread) workers_.emplace_back([this, thread] { Work(thread); });
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size();
    End();
    throw std::runtime_error(
        fmt::format("only {} of {} threads could be started: {}", started + 1, count, error.what()));
  }
}

Threads::~Threads() {
  End();
}

void Threads::End() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  begin_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Threads::ForEach(std::size_t tasks, const std::function<void(std::size_t, int)>& task) {
  if (tasks == 0) return;
  if (tasks == 1 || workers_.empty()) {
    for (std::size_t index = 0; index < tasks; ++index) task(index, 0);
    return;
  }
  std::unique_lock lock(mutex_);
  task_ = &task;
  tasks_ = tasks;
  next_ = 0;
  begin_.notify_all();
  TakeTasks(lock, 0);
  end_.wait(lock, [this] { return running_ == 0; });
  task_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Threads::ForRanges(std::size_t size, std::size_t least,
                        const std::function<void(std::size_t, std::size_t, int)>& range) {
  const std::size_t wanted = static_cast<std::size_t>(count()) * kRangesPerThread;
  const std::size_t piece = std::max(std::max<std::size_t>(least, 1), (size + wanted - 1) / wanted);
  ForEach((size + piece - 1) / piece, [&](std::size_t index, int thread) {
    range(index * piece, std::min(size, (index + 1) * piece), thread);
  });
}

/// Runs tasks until none is left. The lock is held except while a task runs.
void Threads::TakeTasks(std::unique_lock<std::mutex>& lock, int thread) {
  while (next_ < tasks_) {
    const std::size_t index = next_++;
    const auto& task = *task_;
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    try {
      task(index, thread);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --running_;
    if (error) {
      if (!error_) error_ = error;
      next_ = tasks_;
    }
  }
  if (running_ == 0) end_.notify_one();
}

void Threads::Work(int thread) {
  std::unique_lock lock(mutex_);
  for (;;) {
    begin_.wait(lock, [this] { return stop_ || (task_ != nullptr && next_ < tasks_); });
    if (stop_) return;
    TakeTasks(lock, thread);
  }
}

}  // namespace warren::histgbt
