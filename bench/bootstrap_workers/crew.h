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
  /// Creates a worker for each of `members`, which that worker fills in. Task ids count up from `first_task`.
  Crew(int first_task, std::span<Membership> members, const WorkerOptions& options);

  /// Join and ShutDown start all workers together and return when the last one has finished. They throw
  /// std::runtime_error if a worker fails, with its task id and stage; the crew is then unusable.
  void Join();
  void ShutDown();

 private:
  /// Runs one worker's part; `index` identifies the worker in an error.
  Detached Run(std::size_t index, Task<void> part);
  void RunUntilIdle();

  EventLoop loop_;
  int first_task_;
  std::span<Membership> members_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int num_busy_ = 0;
  std::string failure_;  ///< the error of the first worker that failed
};

}  // namespace warren::bench
