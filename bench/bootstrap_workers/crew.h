// The simulated workers of one process, in one thread.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <span>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/membership.h"
#include "bench/bootstrap_workers/task.h"
#include "bench/bootstrap_workers/worker.h"

namespace warren::bench {

class Crew {
 public:
  /// Workers with the task ids `first_task`, ... one for each of `members`, which they fill in. `num_linked`
  /// counts those whose links stand.
  Crew(int first_task, std::span<Membership> members, std::atomic<int>& num_linked,
       const WorkerOptions& options);

  /// Both start every worker at once and return when the last one is through. They throw what the first
  /// worker that failed threw; the crew is then of no further use.
  void Join();
  void ShutDown();

  int num_failed_connects() const;

 private:
  Detached Run(Task<void> part);
  Task<void> JoinAndCount(std::size_t index);
  void RunUntilIdle();

  EventLoop loop_;
  std::span<Membership> members_;
  std::atomic<int>* num_linked_;
  std::deque<Worker> workers_;
  int num_busy_ = 0;
  std::exception_ptr failure_;
};

}  // namespace warren::bench
