// The state of a job at one time, for the status line on the terminal, the metrics and the page. Values only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "submit/output/log_line.h"
#include "submit/process/sample.h"
#include "wire/report.h"

namespace warren::submit {

enum class WorkerState {
  kWaiting,    ///< not started yet, or waiting in a queue
  kStarting,   ///< running, but has neither joined the job nor reported a round
  kRunning,    ///< has its rank, needs none, or has reported a round without one
  kStuck,      ///< stopped, waiting for a disk, or silent for --hang-timeout
  kSucceeded,  ///< ended successfully
  kFailed      ///< ended in another way, and has not been started again (yet)
};
/// "waiting", "starting", ...
const char* Name(WorkerState state);

/// A process of the job: a worker, a server or the scheduler.
struct WorkerSnapshot {
  std::string name;       ///< "worker 3"
  std::string role;       ///< "worker", "server", "scheduler"
  std::size_t index = 0;  ///< index in the plan and in JobSnapshot::workers
  std::optional<int> rank;
  std::string host;
  int pid = 0;
  WorkerState state = WorkerState::kWaiting;
  int restarts = 0;     ///< number of restarts of this process alone
  std::string trouble;  ///< the current problem: "stopped by a signal for 61 s"; usually empty
  std::string stack;    ///< its stacks, as last shown by a debugger; usually empty

  std::optional<ProcessSample> sample;
  double cores_used = 0;  ///< average between the last two samples: 2.5

  std::optional<wire::ReportedCall> call;
  std::vector<wire::ReportedTraffic> traffic;
  std::optional<wire::ReportedProgress> progress;
  std::optional<wire::ReportedReading> reading;
  double seconds_in_collectives = 0;
  double seconds_waited = 0;     ///< the part of seconds_in_collectives spent waiting for late ranks
  double seconds_made_wait = 0;  ///< the longest wait of any other rank for this rank, summed over calls
  double makes_wait = 0;         ///< seconds_made_wait per second since the workers were first linked: 0.41
  double makes_wait_now = 0;     ///< the same over the last half minute
};

/// The evaluation of one round: "[12] train-rmse:0.21".
struct Evaluation {
  std::int64_t round = 0;
  double seconds = 0;  ///< since the job began
  std::vector<std::pair<std::string, double>> metrics;
  bool begins = false;  ///< whether it is the first one of a training run or after a restart
};

/// A message about the job that was shown to the user.
struct JobEvent {
  double seconds = 0;  ///< since the job began
  Severity severity = Severity::kInfo;
  std::string text;
};

struct JobSnapshot {
  std::string name;     ///< --jobname, or the name of the command
  std::string command;  ///< its words, separated by spaces
  std::string cluster;  ///< "local", "ssh", ...
  std::chrono::system_clock::time_point began;
  double seconds = 0;  ///< since `began`; until the end if is_over
  bool is_over = false;
  int exit_code = 0;       ///< valid if is_over
  std::string story = {};  ///< why the job failed; empty if it did not

  int job_restarts = 0;
  int world_size = 0;  ///< number of ranks; changes with each generation of an elastic job
  int generation = 0;  ///< the number of the current generation of an elastic job; 0: none yet
  double seconds_between_generations = 0;  ///< the sum over all changes of generation
  std::vector<WorkerSnapshot> workers;     ///< all processes, in the plan's order

  /// The latest finished round. 0: none, or the first round if the program prints round numbers from 0.
  std::int64_t round = 0;
  std::int64_t rounds = 0;  ///< total number of rounds; 0: unknown
  std::optional<double> seconds_left;
  double rows_per_second = 0;           ///< total over the workers that read data; 0 if none does
  std::vector<Evaluation> evaluations;  ///< one per round, ascending; at most kMaxEvaluations
  std::vector<JobEvent> events;         ///< the latest ones; at most kMaxEvents
};

/// The average duration of a round in seconds, over at most the last `most` evaluations. Evaluations from
/// before the latest restart or training run do not count. nullopt if there is no second round yet.
std::optional<double> SecondsPerRound(const std::vector<Evaluation>& evaluations, std::size_t most);

/// Limit on the number of evaluations. Beyond it, every second one is dropped.
inline constexpr std::size_t kMaxEvaluations = 4096;
inline constexpr std::size_t kMaxEvents = 256;

}  // namespace warren::submit
