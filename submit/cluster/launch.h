// How a cluster starts all processes of one role at once: the command of its launcher, or of its queue. Made
// by pure functions, one file a cluster; gang.h carries it out, --dry-run shows it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/cluster/script.h"
#include "submit/options.h"
#include "submit/plan.h"
#include "submit/shipping.h"

namespace warren::submit {

/// What a queue says of a job.
enum class JobState {
  kPending,  ///< it waits; also after it was requeued
  kRunning,
  kOver,
};

struct JobReport {
  JobState state = JobState::kOver;
  std::string words;   ///< as the queue has it: "PENDING (Resources)", "FAILED (NonZeroExitCode)"
  bool stays = false;  ///< in the queue, although it is over, until it is cancelled
};

/// Of a launcher that puts the job into a queue.
struct Queue {
  std::string name;  ///< "Slurm"
  bool returns =
      true;  ///< the launcher returns then, and the queue is asked; else it stays as long as the job
  /// The number or name of the job in what the launcher printed; nothing: it is not there.
  std::function<std::optional<std::string>(std::string_view printed)> id;
  std::function<std::vector<std::string>(const std::string& id)> cancel;
  std::function<std::vector<std::string>(const std::string& id)> ask;
  /// What the answer to `ask` means for the job; nothing: ask again.
  std::function<std::optional<JobReport>(const std::string& id, std::string_view printed, int exit_code)>
      report;
};

struct Launch {
  std::string name;                  ///< "mpirun"
  std::vector<std::string> words;    ///< the command; the first is looked for on PATH
  tracker::Environment environment;  ///< in addition to dmlc-submit's own
  std::string input;                 ///< for its standard input
  std::vector<std::pair<std::string, std::string>>
      files;                     ///< name and content, of files that words name as "FILE:name"
  std::string directory = {};    ///< where they lie; empty: in a temporary one of this machine
  bool needs_directory = false;  ///< even without files: words name it as "FILE:"
  std::optional<Queue> queue;    ///< none: the command runs as long as the processes do
  /// Whether a line of the launcher's says nothing about the job, and is not shown; null: none does.
  bool (*is_noise)(std::string_view line) = nullptr;
};

/// How a script finds its place.
struct ScriptSetting {
  std::string rank;  ///< a word of the shell that says which process of the gang it is, from 0
  /// The same among those of its host, and how many these are. By default each process stands for a host of
  /// its own: the cluster gives it what it asked for, and nobody tells who is beside it.
  std::string local_rank = "0";
  std::string local_size = "1";
  tracker::Environment environment = {};  ///< for the processes, where the job does not set the same
  std::string directory = {};             ///< where they run; empty: the current one, by its full name
  std::vector<Archive> archives = {};     ///< that lie there and are to be unpacked
  CoreShare cores = {};                   ///< taken when the workers are to share the cores of their hosts
  std::string secrets_file = {};          ///< with GangPlan::secrets; empty: they stand in the script
};

/// What a launch is made of.
struct GangPlan {
  const Options* options = nullptr;
  tracker::Role role = tracker::Role::kWorker;
  std::size_t first = 0;  ///< index of the first process in the plan
  std::size_t count = 0;
  std::string job_name;
  /// Commands of the shell that export what no other user may read, the job's token; empty: there is nothing.
  std::string secrets;
  /// Full name of a directory, not made yet, in the one that the job's hosts run it in.
  std::string shared_directory;
  /// The text of a script that is to run once for each process.
  std::function<std::string(const ScriptSetting& setting)> script;
};

}  // namespace warren::submit
