// The actions that a job's policy (job/supervisor.h) requests and run.cc carries out.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "submit/output/log_line.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

struct JobResult {
  int exit_code = 0;         ///< dmlc-submit's exit code
  bool interrupted = false;  ///< whether a signal or a request stopped the job; output may have no reader
};

/// Prepares the cluster for a start of the job; Prepared or Trouble follows.
struct PrepareCluster {};
/// Starts a process; Started or StartFailed follows, and Exited after Started.
struct StartProcess {
  std::size_t index;
  int attempt;                    ///< counts from 0
  std::optional<Seat> seat = {};  ///< its seat in an elastic job whose hosts may change
};
/// Asks a process to leave the job at its own pace; Exited follows.
struct AskToLeave {
  std::size_t index;
};
/// Calls Resume after the events that are already pending.
struct ResumeSoon {};
/// Reports the failure of a worker to the tracker; `how` is human-readable.
struct ReportFailure {
  std::string task_id;
  std::string how;
};
/// Sets the number of workers that are running or about to start, for the tracker of an elastic job.
struct ExpectWorkers {
  int num_workers;
};
/// Stops the tracker, so that no more workers can join.
struct StopTracker {};
/// Stops the tracker, asks every process to end, and kills those still running after a grace period. Exited
/// follows for each process, and ClusterIdle if commands of the cluster were running.
struct StopAll {};
/// Kills every process immediately.
struct KillAll {};
/// Kills leftover processes and plans the job for another start with a new tracker; Replanned or ReplanFailed
/// follows.
struct Replan {
  std::string why;                     ///< why the job is restarted
  std::optional<std::size_t> culprit;  ///< the process that caused the restart, if any
};
/// Shows the held-back error, if any, of a process that is restarted or that caused a restart of the job.
struct ShowErrorOf {
  std::size_t index;
};
/// Shows the held-back error of the process that failed first (`culprit`, if known), and omits the held-back
/// errors of all others.
struct ShowErrors {
  std::optional<std::size_t> culprit;
  bool repeat_last_output;  ///< show the culprit's last output if no error of it is held back
};
struct ShowProgress {
  int joined, expected;
};
struct HideProgress {};
/// Tells the user that all workers are linked, for the first time since the job began or was restarted.
struct TellAllAreUp {
  std::chrono::duration<double> took;
};
/// Warns the user if the workers, all of which have ended successfully without joining the job, were
/// apparently meant to join it.
struct TellOfSeparatePrograms {
  int num_workers;
};
/// The job is over; no action follows.
struct FinishJob {
  JobResult result;
  std::string story = {};                   ///< why the job failed; empty if it did not
  std::optional<std::size_t> culprit = {};  ///< the process that made the job fail, if any
};
using Action =
    std::variant<PrepareCluster, StartProcess, AskToLeave, ResumeSoon, ReportFailure, ExpectWorkers,
                 StopTracker, StopAll, KillAll, Replan, LogLine, ShowErrorOf, ShowErrors, ShowProgress,
                 HideProgress, TellAllAreUp, TellOfSeparatePrograms, FinishJob>;

}  // namespace warren::submit
