// The processes of a job, as a function of the options. Nothing is started here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "submit/command.h"
#include "submit/options.h"
#include "submit/process/binding.h"
#include "tracker/environment.h"

namespace warren::submit {

/// Shown by --dry-run instead of the random token of each job.
inline constexpr char kShownSecret[] = "MADE-FOR-EACH-JOB";

struct PlannedProcess {
  tracker::Role role = tracker::Role::kWorker;
  int task_id = 0;                      ///< 0-based within the role
  std::string file;                     ///< the file to execute
  std::vector<std::string> argv;        ///< including the command's own name
  tracker::Environment environment;     ///< added to the inherited one, for the first attempt
  std::vector<std::string> unset;       ///< inherited variables that would mislead the process
  std::string log_file;                 ///< additional file for its output; empty: none
  CoreList cores = {};                  ///< cores of this machine to which it is bound; empty: not bound
  std::string python_environment = {};  ///< its Python environment on other hosts: see FoundCommand
};

/// An environment variable with a number, under the names that torchrun (for torch.distributed and the like)
/// and horovodrun use.
struct PlaceVariable {
  const char* torch;
  const char* horovod;
};
inline constexpr PlaceVariable kRankVariable{"RANK", "HOROVOD_RANK"};
inline constexpr PlaceVariable kWorldSizeVariable{"WORLD_SIZE", "HOROVOD_SIZE"};
inline constexpr PlaceVariable kLocalRankVariable{"LOCAL_RANK", "HOROVOD_LOCAL_RANK"};
inline constexpr PlaceVariable kLocalSizeVariable{"LOCAL_WORLD_SIZE", "HOROVOD_LOCAL_SIZE"};
/// The worker's index among the workers with the same local rank (one per host), and their number.
inline constexpr char kCrossRankVariable[] = "HOROVOD_CROSS_RANK";
inline constexpr char kCrossSizeVariable[] = "HOROVOD_CROSS_SIZE";
/// The address and port at which rank 0 listens; --env may set them.
inline constexpr char kMasterVariable[] = "MASTER_ADDR";
inline constexpr char kMasterPortVariable[] = "MASTER_PORT";
/// Shown by --dry-run instead of the port chosen for each job.
inline constexpr std::uint16_t kShownMasterPort = 29500;

/// The place where a process runs.
struct Started {
  pid_t pid = -1;    ///< on that host; -1: not known yet
  std::string host;  ///< empty: not known yet
};

/// --jobname, or the name of the command (NameOfCommand).
std::string JobName(const Options& options);
/// The same for a cluster's queue, with "dmlc-" before the command's name.
std::string QueuedJobName(const Options& options);

void AddPlaceVariable(const PlaceVariable& variable, const std::string& value,
                      tracker::Environment& environment);
/// The variable as arguments of a shell's export command: `RANK="1" HOROVOD_RANK="1"`.
std::string ExportWords(const PlaceVariable& variable, const std::string& value);

/// "worker 3", "server 0", "scheduler".
std::string ProcessName(tracker::Role role, int task_id);

/// The inputs of a plan besides the options.
struct PlanContext {
  tracker::JobAddress address;         ///< address of the tracker and the scheduler
  FoundCommand command;                ///< the command that options.command[0] refers to
  std::vector<std::string> inherited;  ///< names of the variables in dmlc-submit's environment
  int usable_cores = 1;                ///< on this machine, for workers that run here
  Binding binding = {};                ///< for processes that run here
  std::uint16_t master_port = 0;       ///< on worker 0's host, for torch.distributed
  int report_seconds = 0;              ///< interval of the workers' reports; 0: no reports
};

/// The variable of OpenMP, which XGBoost uses, too.
inline constexpr std::string_view kThreadsVariable = "OMP_NUM_THREADS";

/// How a worker's number of threads (OMP_NUM_THREADS) is chosen.
enum class Threads {
  kOfUser,  ///< set by the user in the environment or with --env, or left to the cluster
  kChosen,  ///< --worker-cores
  kShare,   ///< its share of the host's cores; on other hosts, a script determines it
};
Threads ThreadsOf(const Options& options, const std::vector<std::string>& inherited);

/// The effective --bind for processes that dmlc-submit itself binds.
Bind BindOf(const Options& options);
/// The number of cores on a host that its workers leave to the servers bound there.
int CoresOfServers(const Options& options, int servers);
/// The processes to bind on a host with this many usable cores. `omp_num_threads`: its value in the
/// environment there; --env takes precedence.
HostProcesses ProcessesToBind(const Options& options, int workers, int servers, int usable_cores,
                              std::string_view omp_num_threads);

/// The processes of the job in the order in which they are started: scheduler, servers, workers. Throws
/// UsageError if --env names a variable that the job itself sets.
std::vector<PlannedProcess> Plan(const Options& options, const PlanContext& context);

/// The environment additions for a later attempt, which differ in DMLC_NUM_ATTEMPT.
tracker::Environment EnvironmentOfAttempt(const PlannedProcess& process, int attempt);

/// The variables common to all processes of a role: without DMLC_TASK_ID, DMLC_NUM_ATTEMPT and RANK.
tracker::Environment WithoutTask(tracker::Environment environment);

/// Whether the environment, by --env or the plan, tells torch.distributed where worker 0 is.
bool NamesMaster(const PlannedProcess& process);

/// The processes as shell commands to paste, each preceded by a comment line.
std::string ShowPlan(const std::vector<PlannedProcess>& plan);

}  // namespace warren::submit
