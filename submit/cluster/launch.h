// Describes how a cluster starts all processes of one role together: the command of its launcher or queue. A
// function without side effects makes a Launch, in one file per cluster; gang.h carries it out, and --dry-run
// shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/cluster/script.h"
#include "submit/options/options.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

/// The state of a job in a queue.
enum class JobState {
  kPending,  ///< waiting, possibly after it was requeued
  kRunning,
  kOver,
};

struct JobReport {
  JobState state = JobState::kOver;
  std::string words;   ///< the state as the queue names it: "PENDING (Resources)", "FAILED (NonZeroExitCode)"
  bool stays = false;  ///< whether the job, although over, stays in the queue until it is canceled
};

/// The queue to which a launcher submits the job.
struct Queue {
  std::string name;  ///< "Slurm"
  /// Whether the launcher returns once the job is in the queue, which is then queried. Otherwise the launcher
  /// runs as long as the job.
  bool returns = true;
  /// Finds the number or name of the job in the launcher's output; nullopt if it is not there.
  std::function<std::optional<std::string>(std::string_view printed)> id;
  /// The command that cancels the job.
  std::function<std::vector<std::string>(const std::string& id)> cancel;
  /// The command that queries the state of the job; null unless `returns`.
  std::function<std::vector<std::string>(const std::string& id)> ask;
  /// Converts the output of `ask` into a report; null unless `returns`. Returns nullopt if the state cannot
  /// be determined now, so that the query must be repeated.
  std::function<std::optional<JobReport>(const std::string& id, std::string_view printed, int exit_code)>
      report;
};

struct Launch {
  std::string name;                  ///< "mpirun"
  std::vector<std::string> words;    ///< the command; the first word is looked up on PATH
  tracker::Environment environment;  ///< variables in addition to dmlc-submit's own
  std::string input;                 ///< standard input of the command; if empty, it has none
  /// The names and contents of files; words refer to them as "FILE:name".
  std::vector<std::pair<std::string, std::string>> files;
  std::string directory = {};    ///< the directory of the files; empty for a temporary one on this machine
  bool needs_directory = false;  ///< make the directory even without files: words refer to it as "FILE:"
  std::optional<Queue> queue;    ///< nullopt if nothing is queued
  /// Returns whether to hide a line of the launcher's output, because it is unrelated to the job. If null, no
  /// line is hidden.
  bool (*is_noise)(std::string_view line) = nullptr;
};

/// The arguments for making a Launch.
struct GangPlan {
  const Options* options = nullptr;
  tracker::Role role = tracker::Role::kWorker;
  std::size_t count = 0;
  std::string job_name;
  /// Shell commands that export the job's token and set the variable agent_key.
  std::string secrets;
  /// Absolute path of a directory, not created yet, inside the job's working directory.
  std::string shared_directory;
  /// Makes the script that the launcher runs once for each process.
  std::function<std::string(const ScriptSetting& setting)> script;

  bool of_workers() const { return role == tracker::Role::kWorker; }
  /// The cores and the memory that each process requests.
  int cores() const { return of_workers() ? options->worker_cores : options->server_cores; }
  std::optional<std::uint64_t> memory_bytes() const {
    return of_workers() ? options->worker_memory_bytes : options->server_memory_bytes;
  }
  /// The requested memory in MiB for each core, rounded up.
  std::optional<std::uint64_t> mebibytes_per_core() const {
    const std::uint64_t unit = static_cast<std::uint64_t>(cores()) << 20;
    return memory_bytes() ? std::optional((*memory_bytes() + unit - 1) / unit) : std::nullopt;
  }
};

}  // namespace warren::submit
