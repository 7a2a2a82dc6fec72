// All simulated workers of a job, spread over as few processes as the limit on open descriptors allows. The
// processes share one block of memory for their results and go from phase to phase together.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/bootstrap_workers/fiber.h"
#include "bench/bootstrap_workers/membership.h"
#include "bench/bootstrap_workers/worker.h"

namespace warren::bench {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

class Fleet {
 public:
  /// How a phase ended.
  enum class Outcome { kDone, kFailed, kTimedOut };

  /// Forks the processes; they wait.
  Fleet(int num_workers, const WorkerOptions& options);
  /// Kills the processes.
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// Every worker joins the job, all at once; done when all links of all workers stand.
  Outcome Join(Clock::time_point deadline) { return RunPhase(deadline); }
  /// Every worker says shutdown, all at once. After a Join that was done.
  Outcome ShutDown(Clock::time_point deadline) { return RunPhase(deadline); }

  int num_processes() const { return static_cast<int>(processes_.size()); }
  /// Workers whose links stand, also after a Join that was not done.
  int num_linked() const;
  /// From the first connection to the last link.
  Seconds join_time() const;
  /// Processor time the simulation itself took in Join.
  Seconds join_cpu_time() const;
  /// Connections between workers that failed and were made at a later try.
  int num_failed_connects() const;
  /// While a phase runs, and after one that was not done, they may be changing: good for a diagnosis.
  std::span<const Membership> members() const;
  /// What a worker that failed had to say; empty when none has.
  std::string error() const;

 private:
  struct Shared;
  struct Process {
    int pid = -1;
    Descriptor control;  ///< one byte each way a phase
  };

  void RunProcess(int index, int num_processes, const Descriptor& control, const WorkerOptions& options);
  Outcome RunPhase(Clock::time_point deadline);

  int num_workers_;
  std::unique_ptr<Shared, std::function<void(Shared*)>> shared_;
  std::vector<Process> processes_;
};

}  // namespace warren::bench
