#include "bench/bootstrap_workers/crew.h"

#include <fmt/format.h>

#include <stdexcept>

#include "bench/bootstrap_workers/classic_worker.h"
#include "bench/bootstrap_workers/collective_worker.h"

namespace warren::bench {

Crew::Crew(int first_task, std::span<Membership> members, const WorkerOptions& options)
    : first_task_(first_task), members_(members) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int task = first_task + static_cast<int>(i);
    if (options.dialect == wire::Dialect::kClassic) {
      workers_.push_back(std::make_unique<ClassicWorker>(loop_, task, options));
    } else {
      workers_.push_back(std::make_unique<CollectiveWorker>(loop_, task, options));
    }
  }
}

Detached Crew::Run(std::size_t index, Task<void> part) {
  ++num_busy_;
  try {
    co_await part;
  } catch (const std::exception& error) {
    if (failure_.empty())
      failure_ = fmt::format("task {}: {}, while {}", first_task_ + static_cast<int>(index), error.what(),
                             StageName(members_[index].stage));
  }
  --num_busy_;
}

void Crew::RunUntilIdle() {
  while (num_busy_ > 0 && failure_.empty()) loop_.RunOnce();
  if (!failure_.empty()) throw std::runtime_error(failure_);
}

void Crew::Join() {
  for (std::size_t i = 0; i < workers_.size(); ++i) Run(i, workers_[i]->Join(members_[i]));
  RunUntilIdle();
}

void Crew::ShutDown() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Run(i, workers_[i]->ShutDown(members_[i]));
  }
  RunUntilIdle();
}

}  // namespace warren::bench
