// A process of a job as planned, independent of where it will run: its command, environment and cores.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "submit/process/binding.h"
#include "tracker/environment.h"

namespace warren::submit {

/// A place for one process of an elastic job whose hosts may change (cluster/seats.h).
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
  std::vector<std::string> unset;       ///< inherited variables that would mislead the process
  std::string log_file;                 ///< additional file for its output; empty if there is none
  CoreList cores = {};                  ///< cores of this machine to which it is bound; empty if not bound
  std::string python_environment = {};  ///< its Python environment on other hosts: see FoundCommand
  std::optional<Seat> seat = {};        ///< its seat, unless the cluster decides where it runs
};

/// The names that torchrun (for torch.distributed and the like) and horovodrun use for an environment
/// variable with a rank or a size.
struct PlaceVariable {
  const char* torch;
  const char* horovod;
};
inline constexpr PlaceVariable kRankVariable{"RANK", "HOROVOD_RANK"};
inline constexpr PlaceVariable kWorldSizeVariable{"WORLD_SIZE", "HOROVOD_SIZE"};
inline constexpr PlaceVariable kLocalRankVariable{"LOCAL_RANK", "HOROVOD_LOCAL_RANK"};
inline constexpr PlaceVariable kLocalSizeVariable{"LOCAL_WORLD_SIZE", "HOROVOD_LOCAL_SIZE"};
/// The worker's index among the workers with the same local rank (one per host), and the number of those
/// workers.
inline constexpr char kCrossRankVariable[] = "HOROVOD_CROSS_RANK";
inline constexpr char kCrossSizeVariable[] = "HOROVOD_CROSS_SIZE";
/// The address and port at which rank 0 listens; --env may set them.
inline constexpr char kMasterVariable[] = "MASTER_ADDR";
inline constexpr char kMasterPortVariable[] = "MASTER_PORT";
/// Counts the starts of a process, from 0.
inline constexpr char kAttemptVariable[] = "DMLC_NUM_ATTEMPT";

/// The place where a process runs.
struct Started {
  pid_t pid = -1;    ///< the process ID on that host; -1 if not known yet
  std::string host;  ///< empty if not known yet
};

void AddPlaceVariable(const PlaceVariable& variable, const std::string& value,
                      tracker::Environment& environment);
/// The variable as arguments of a shell's export command: `RANK="1" HOROVOD_RANK="1"`.
std::string ExportWords(const PlaceVariable& variable, const std::string& value);

/// Whether the environment has the variable.
bool HasVariable(const tracker::Environment& environment, std::string_view name);

/// "worker 3", "server 0", "scheduler".
std::string ProcessName(tracker::Role role, int task_id);

/// Returns `process.environment` for the given attempt, in which only DMLC_NUM_ATTEMPT differs.
tracker::Environment EnvironmentOfAttempt(const PlannedProcess& process, int attempt);

/// The variables common to all processes of a role: without DMLC_TASK_ID, DMLC_NUM_ATTEMPT, RANK and
/// HOROVOD_RANK.
tracker::Environment WithoutTask(tracker::Environment environment);

/// Whether `process.environment` has MASTER_ADDR, which --env or the plan sets: the host of worker 0 for
/// torch.distributed.
bool NamesMaster(const PlannedProcess& process);

/// The processes as shell commands to paste, each preceded by a comment line.
std::string ShowPlan(const std::vector<PlannedProcess>& plan);

}  // namespace warren::submit
