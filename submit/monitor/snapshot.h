// A job at one moment, as values: all that people are shown of it, on the terminal, in metrics and on the
// page.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "submit/process/sample.h"
#include "wire/report.h"

namespace warren::submit {

enum class WorkerState {
  kWaiting,    ///< has not been started, or waits in a queue
  kStarting,   ///< runs, and has not joined the job
  kRunning,    ///< has its rank
  kStuck,      ///< has not shown any life for --hang-timeout
  kSucceeded,  ///< has ended with success
  kFailed      ///< has ended otherwise, and is not started again (yet)
};
/// "waiting", "starting", ...
const char* Name(WorkerState state);

/// A process of the job: a worker, a server or the scheduler.
struct WorkerSnapshot {
  std::string name;       ///< "worker 3"
  std::string role;       ///< "worker", "server", "scheduler"
  std::size_t index = 0;  ///< in the plan, and in JobSnapshot::workers
  std::optional<int> rank;
  std::string host;
  int pid = 0;
  WorkerState state = WorkerState::kWaiting;
  int restarts = 0;
  std::string trouble;  ///< what is wrong with it, for people: "stopped by a signal for 61 s"; mostly empty

  std::optional<ProcessSample> sample;
  double cores_used = 0;  ///< lately: 2.5 are two and a half

  std::optional<wire::ReportedCall> call;
  std::vector<wire::ReportedTraffic> traffic;
  std::optional<wire::ReportedProgress> progress;
  std::optional<wire::ReportedReading> reading;
  double seconds_in_collectives = 0;
  double seconds_waited = 0;     ///< the part of seconds_in_collectives spent waiting for late ranks
  double seconds_made_wait = 0;  ///< the longest that any other rank waited for this one, summed over calls
  double makes_wait = 0;         ///< the same as a share of the time that the job has been at it: 0.41
  double makes_wait_now = 0;     ///< the same in the last half minute
};

/// What was printed of one round: "[12] train-rmse:0.21".
struct Evaluation {
  std::int64_t round = 0;
  double seconds = 0;  ///< since the job began
  std::vector<std::pair<std::string, double>> metrics;
  bool begins = false;  ///< whether it is the first after a restart, or of another training
};

/// Something that happened to the job, for people.
struct JobEvent {
  double seconds = 0;    ///< since the job began
  std::string severity;  ///< "info", "warning", "error"
  std::string text;
};

struct JobSnapshot {
  std::string name;     ///< --jobname, or the command's without arguments
  std::string command;  ///< as typed
  std::string cluster;  ///< "local", "ssh", ...
  std::chrono::system_clock::time_point began;
  double seconds = 0;  ///< since then
  bool is_over = false;
  int exit_code = 0;       ///< when it is over
  std::string story = {};  ///< why it failed

  int job_restarts = 0;
  int world_size = 0;
  std::vector<WorkerSnapshot> workers;  ///< all processes, in the plan's order

  std::int64_t round = 0;   ///< 0: none has ended
  std::int64_t rounds = 0;  ///< in all; 0: not known
  std::optional<double> seconds_left;
  double rows_per_second = 0;           ///< while data is read: of all workers; 0: none is being read
  std::vector<Evaluation> evaluations;  ///< by round, the latest of each; at most kMaxEvaluations
  std::vector<JobEvent> events;         ///< the latest; at most kMaxEvents
};

/// How long a round takes, by the last `most` of `evaluations` at most, of this training since its last
/// restart; nullopt before its second round.
std::optional<double> SecondsPerRound(const std::vector<Evaluation>& evaluations, std::size_t most);

/// Beyond, every second evaluation is dropped.
inline constexpr std::size_t kMaxEvaluations = 4096;
inline constexpr std::size_t kMaxEvents = 256;

}  // namespace warren::submit
