// The simulated workers of one process, in one thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/membership.h"
#include "bench/bootstrap_workers/task.h"
#include "bench/bootstrap_workers/worker.h"

namespace warren::bench {

class Crew {
 public:
  /// Workers with the task ids `first_task`, ... one for each of `members`, which they fill in.
  Crew(int first_task, std::span<Membership> members, const WorkerOptions& options);

  /// Both start every worker at once and return when the last one is through. They throw
  /// std::runtime_error when a worker fails, with its task id and what it was doing; the crew is then of no
  /// further use.
  void Join();
  void ShutDown();

  int num_failed_connects() const;

 private:
  /// Runs one worker's part; `index` names it when it fails.
  Detached Run(std::size_t index, Task<void> part);
  void RunUntilIdle();

  EventLoop loop_;
  int first_task_;
  std::span<Membership> members_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int num_busy_ = 0;
  std::string failure_;  ///< of the first worker that failed
};

}  // namespace warren::bench
