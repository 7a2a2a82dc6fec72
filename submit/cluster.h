// One way of getting the processes of a job onto machines and watching them there. What to start, and what to
// do when something ends, is decided elsewhere (plan.h, run.h); a cluster only does it. Each has a file of
// its own.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "submit/console.h"
#include "submit/plan.h"
#include "submit/process.h"

namespace warren::submit {

/// What happens to the processes, each known by the index it was started with. Called from the io_context.
struct ClusterEvents {
  std::function<void(std::size_t index, Stream stream, std::string_view bytes)> output;
  /// The process and everything it left behind is gone, and all of its output has been delivered.
  std::function<void(std::size_t index, const ExitStatus& status)> exited;
};

/// Where a process runs.
struct Started {
  pid_t pid = -1;
  std::string host;
};

class Cluster {
 public:
  Cluster() = default;
  virtual ~Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Starts a process of the plan for the given attempt. `exited` follows. Throws StartError.
  virtual Started Start(std::size_t index, const PlannedProcess& process, int attempt) = 0;
  /// Asks every process to end, and ends it after a grace time. `exited` follows for each.
  virtual void Stop() = 0;
  /// Ends every process at once.
  virtual void Kill() = 0;
  /// Ends what processes that have ended left behind; nothing of theirs runs when it returns, or what does
  /// cannot be ended.
  virtual void EndLeftovers() = 0;
  /// Leaves output where it is until ResumeOutput.
  virtual void PauseOutput() = 0;
  virtual void ResumeOutput() = 0;
};

}  // namespace warren::submit
