// The plan for a process of a job: its command, environment and cores.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/process/binding.h"
#include "tracker/environment.h"

namespace warren::submit {

/// A place for one worker of an elastic job whose hosts may change (cluster/seats.h).
struct Seat {
  std::string host;
  int slot = 0;  ///< 0-based; less than the host's number of slots

  bool operator==(const Seat&) const = default;
};

struct PlannedProcess {
  tracker::Role role = tracker::Role::kWorker;
  int task_id = 0;                      ///< 0-based within the role
  std::string file;                     ///< the file to execute
  std::vector<std::string> argv;        ///< including the command's own name
  tracker::Environment environment;     ///< added to the inherited one, for the first attempt
  std::vector<std::string> unset;       ///< inherited variables to remove, which would mislead the process
  std::string log_file;                 ///< its file in --log-dir, which also gets its output; or empty
  CoreList cores = {};                  ///< cores of this machine to which it is bound; empty if not bound
  std::string python_environment = {};  ///< its Python environment on other hosts: see FoundCommand
  std::optional<Seat> seat = {};        ///< nullopt unless the job is elastic and its hosts may change
};

/// The two names of an environment variable with a rank or a size: those of torchrun (torch.distributed) and
/// of horovodrun.
struct PlaceVariable {
  const char* torch;
  const char* horovod;
};
inline constexpr PlaceVariable kRankVariable{"RANK", "HOROVOD_RANK"};
inline constexpr PlaceVariable kWorldSizeVariable{"WORLD_SIZE", "HOROVOD_SIZE"};
inline constexpr PlaceVariable kLocalRankVariable{"LOCAL_RANK", "HOROVOD_LOCAL_RANK"};
inline constexpr PlaceVariable kLocalSizeVariable{"LOCAL_WORLD_SIZE", "HOROVOD_LOCAL_SIZE"};
/// The worker's index among the workers with the same local rank (one per host), and the number of these
/// workers.
inline constexpr char kCrossRankVariable[] = "HOROVOD_CROSS_RANK";
inline constexpr char kCrossSizeVariable[] = "HOROVOD_CROSS_SIZE";
/// The variables for the address and port at which rank 0 listens for torch.distributed; --env may set them.
inline constexpr char kMasterVariable[] = "MASTER_ADDR";
inline constexpr char kMasterPortVariable[] = "MASTER_PORT";
/// The variable that counts the starts of a process, from 0.
inline constexpr char kAttemptVariable[] = "DMLC_NUM_ATTEMPT";

/// The host and the process ID of a process that has been started.
struct Started {
  pid_t pid = -1;    ///< the process ID on that host; -1 if not known yet
  std::string host;  ///< empty if not known yet
};

void AddPlaceVariable(const PlaceVariable& variable, const std::string& value,
                      tracker::Environment& environment);
/// The variable under both names, as arguments of a shell's export command: `RANK="1" HOROVOD_RANK="1"`.
std::string ExportWords(const PlaceVariable& variable, const std::string& value);

/// Whether the environment has a variable of this name.
bool HasVariable(const tracker::Environment& environment, std::string_view name);
/// The last value of the variable in the environment; nullopt if there is none.
std::optional<std::string> FindVariable(const tracker::Environment& environment, std::string_view name);
/// The variables of `defaults` that `environment` lacks, followed by `environment`.
tracker::Environment WithDefaults(tracker::Environment defaults, const tracker::Environment& environment);

/// The name of a process for people: "worker 3", "server 0", "scheduler".
std::string ProcessName(tracker::Role role, int task_id);
/// The name with what is known of the process: "worker 1 (rank 2, host vm, pid 4242)".
std::string DescribeProcess(const std::string& name, std::optional<int> rank, const Started& where);

/// Returns `process.environment` for the given attempt, in which only DMLC_NUM_ATTEMPT differs.
tracker::Environment EnvironmentOfAttempt(const PlannedProcess& process, int attempt);

/// The variables common to all processes of a role: without DMLC_TASK_ID, DMLC_NUM_ATTEMPT, RANK and
/// HOROVOD_RANK.
tracker::Environment WithoutTask(tracker::Environment environment);

/// Whether `process.environment` has MASTER_ADDR, the host of worker 0 for torch.distributed. Either --env or
/// the plan sets it.
bool NamesMaster(const PlannedProcess& process);

/// The processes as shell commands, each after a comment line that names the process.
std::string ShowPlan(const std::vector<PlannedProcess>& plan);

}  // namespace warren::submit
