// All simulated workers of a job, spread over as few processes as the limit on open descriptors allows. The
// processes share one block of memory for their results and enter each phase together.
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
  /// The outcome of a phase.
  enum class Outcome { kDone, kFailed, kTimedOut };

  /// Forks the processes, which then wait.
  Fleet(int num_workers, const WorkerOptions& options);
  /// Kills the processes.
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// All workers join the job together. Returns kDone when all their links are established.
  Outcome Join(Clock::time_point deadline) { return RunPhase(deadline); }
  /// All workers report shutdown together. Call only after Join has returned kDone.
  Outcome ShutDown(Clock::time_point deadline) { return RunPhase(deadline); }

  int num_processes() const { return static_cast<int>(processes_.size()); }
  /// The number of workers whose links are established, even if Join failed.
  int num_linked() const;
  /// The time from the first connection to the last link.
  Seconds join_time() const;
  /// The processor time of the simulation itself during Join.
  Seconds join_cpu_time() const;
  /// The results of the workers. They may still change during a phase, and after a phase that failed or timed
  /// out; then use them for diagnosis only.
  std::span<const Membership> members() const;
  /// The message of a failed worker; empty if none failed.
  std::string error() const;

 private:
  struct Shared;
  struct Process {
    int pid = -1;
    Descriptor control;  ///< one byte each way per phase
  };

  void RunProcess(int index, int num_processes, const Descriptor& control, const WorkerOptions& options);
  Outcome RunPhase(Clock::time_point deadline);

  int num_workers_;
  std::unique_ptr<Shared, std::function<void(Shared*)>> shared_;
  std::vector<Process> processes_;
};

}  // namespace warren::bench
