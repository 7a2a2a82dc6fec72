// One way of getting the processes of a job onto machines and watching them there. What to start, and what to
// do when something ends, is decided elsewhere (plan.h, run.h); a cluster only does it. Each has a file of
// its own; clusters.h has the list of them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "submit/plan.h"
#include "submit/process/process.h"
#include "submit/process/stream.h"

namespace warren::submit {

/// Where a process runs.
struct Started {
  pid_t pid = -1;    ///< there; -1: not known yet
  std::string host;  ///< empty: not known yet
};

/// What happens to the processes, each known by its index in the plan. Called from the io_context.
struct ClusterEvents {
  std::function<void(std::size_t index, Stream stream, std::string_view bytes)> output;
  /// Where it runs is known now, later than Start returned.
  std::function<void(std::size_t index, const Started& where)> located;
  /// The process and everything it left behind is gone, and all of its output has been delivered.
  std::function<void(std::size_t index, const ExitStatus& status)> exited;
  /// The launcher itself said something: a line, or a piece of one.
  std::function<void(const std::string& launcher, Stream stream, std::string_view piece)> said;
  /// The job waits in a queue: how long workers are missing is counted from here anew.
  std::function<void()> waits;
  /// The queue has ended all processes and will start them anew: the job is to be stopped and begun again,
  /// and Start will find them.
  std::function<void(const std::string& story)> requeued;
  /// Cluster::busy() has become false.
  std::function<void()> idle;
  /// The tracker that the cluster runs has ended although the job has not.
  std::function<void(const std::string& story)> tracker_failed;
  /// The job cannot go on, for a reason that is no process's.
  std::function<void(const std::string& story)> trouble;
};

class Cluster {
 public:
  Cluster() = default;
  virtual ~Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Does what has to be done before the first start of the job, such as copying files; calls `ready` then,
  /// from the io_context, or `trouble`.
  virtual void Prepare(const std::function<void()>& ready) { ready(); }
  /// Starts a process of the plan for the given attempt. `exited` follows. Throws StartError.
  virtual Started Start(std::size_t index, const PlannedProcess& process, int attempt) = 0;
  /// Asks every process to end, and ends it after a grace time. `exited` follows for each.
  virtual void Stop() = 0;
  /// Ends every process at once.
  virtual void Kill() = 0;
  /// True while something of the cluster's own still runs, such as a launcher, or the command that cancels a
  /// job. It calls `idle` when that has ended.
  virtual bool busy() const { return false; }
  /// True where the scheduler of a parameter-server job runs there, too, and not beside dmlc-submit.
  virtual bool runs_scheduler() const { return false; }
  /// Leaves output where it is until ResumeOutput, as far as it does not come through Children.
  virtual void PauseOutput() {}
  virtual void ResumeOutput() {}
};

}  // namespace warren::submit
