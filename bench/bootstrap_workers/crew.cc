#include "bench/bootstrap_workers/crew.h"

#include <fmt/format.h>

#include <stdexcept>

namespace warren::bench {

Crew::Crew(int first_task, std::span<Membership> members, std::atomic<int>& num_linked,
           const WorkerOptions& options)
    : members_(members), num_linked_(&num_linked) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    workers_.emplace_back(loop_, first_task + static_cast<int>(i), options);
  }
}

Detached Crew::Run(Task<void> part) {
  ++num_busy_;
  try {
    co_await part;
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  --num_busy_;
}

void Crew::RunUntilIdle() {
  while (num_busy_ > 0 && !failure_) loop_.RunOnce();
  if (failure_) std::rethrow_exception(failure_);
}

Task<void> Crew::JoinAndCount(std::size_t index) {
  co_await workers_[index].Join(members_[index]);
  num_linked_->fetch_add(1, std::memory_order_relaxed);
}

void Crew::Join() {
  for (std::size_t i = 0; i < workers_.size(); ++i) Run(JoinAndCount(i));
  RunUntilIdle();
}

void Crew::ShutDown() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Run(workers_[i].ShutDown(members_[i].rank, members_[i].world_size));
  }
  RunUntilIdle();
}

int Crew::num_failed_connects() const {
  int sum = 0;
  for (const Worker& worker : workers_) sum += worker.num_failed_connects();
  return sum;
}

}  // namespace warren::bench
