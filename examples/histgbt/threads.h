// A thread pool for the tasks of a loop. Threads sleep between loops.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace warren::histgbt {

/// A pool of `threads` threads, including the caller's. Not thread-safe: only one thread may use it, and
/// tasks may not.
class Threads {
 public:
  /// 0 means one thread per core that this process may use. Throws std::runtime_error if the threads cannot
  /// be started.
  explicit Threads(int threads = 0);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls `task(index, thread)` for each index below `tasks`, in any order; `thread` is below count(), and
  /// differs between concurrent calls. Returns when all calls have ended. After an exception, starts no more
  /// tasks, and rethrows the first exception when all calls have ended.
  void ForEach(std::size_t tasks, const std::function<void(std::size_t index, int thread)>& task);

  /// Calls `range(begin, end, thread)` for ranges that together cover 0 to `size`, each with at least `least`
  /// items (except the last).
  void ForRanges(std::size_t size, std::size_t least,
                 const std::function<void(std::size_t begin, std::size_t end, int thread)>& range);

 private:
  void End();
  void Work(int thread);
  void TakeTasks(std::unique_lock<std::mutex>& lock, int thread);

  std::mutex mutex_;
  std::condition_variable begin_;
  std::condition_variable end_;
  const std::function<void(std::size_t, int)>* task_ = nullptr;
  std::size_t tasks_ = 0;
  std::size_t next_ = 0;
  std::size_t running_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace warren::histgbt
