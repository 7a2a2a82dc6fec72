// What a job consists of: the list of processes, as a function of the options. Nothing is started here.
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

/// In place of what is drawn at random for each job, in --dry-run.
inline constexpr char kShownSecret[] = "MADE-FOR-EACH-JOB";

struct PlannedProcess {
  tracker::Role role = tracker::Role::kWorker;
  int task_id = 0;                      ///< 0-based within the role
  std::string file;                     ///< what is executed
  std::vector<std::string> argv;        ///< with the command's own name in front
  tracker::Environment environment;     ///< added to what is inherited, for the first attempt
  std::vector<std::string> unset;       ///< inherited variables that would mislead the process
  std::string log_file;                 ///< where its output is kept too; empty: nowhere
  CoreList cores = {};                  ///< of this machine, to which it is bound; empty: it is not
  std::string python_environment = {};  ///< that it uses on other hosts: see FoundCommand
};

/// A number in the environment of each worker, by the name that torchrun gives it, for torch.distributed and
/// its like, and by that of horovodrun.
struct PlaceVariable {
  const char* torch;
  const char* horovod;
};
inline constexpr PlaceVariable kRankVariable{"RANK", "HOROVOD_RANK"};
inline constexpr PlaceVariable kWorldSizeVariable{"WORLD_SIZE", "HOROVOD_SIZE"};
inline constexpr PlaceVariable kLocalRankVariable{"LOCAL_RANK", "HOROVOD_LOCAL_RANK"};
inline constexpr PlaceVariable kLocalSizeVariable{"LOCAL_WORLD_SIZE", "HOROVOD_LOCAL_SIZE"};
/// The worker's place among those with its local rank, one of each host, and their number.
inline constexpr char kCrossRankVariable[] = "HOROVOD_CROSS_RANK";
inline constexpr char kCrossSizeVariable[] = "HOROVOD_CROSS_SIZE";
/// Where rank 0 listens; --env may say so, too.
inline constexpr char kMasterVariable[] = "MASTER_ADDR";
inline constexpr char kMasterPortVariable[] = "MASTER_PORT";
/// In place of the port that is chosen for each job, in --dry-run.
inline constexpr std::uint16_t kShownMasterPort = 29500;

/// Where a process runs.
struct Started {
  pid_t pid = -1;    ///< there; -1: not known yet
  std::string host;  ///< empty: not known yet
};

/// --jobname, else the command's (NameOfCommand).
std::string JobName(const Options& options);
/// The same for the queue of a cluster, with "dmlc-" before the command's.
std::string QueuedJobName(const Options& options);

void AddPlaceVariable(const PlaceVariable& variable, const std::string& value,
                      tracker::Environment& environment);
/// The same as words of a shell's export command: `RANK="1" HOROVOD_RANK="1"`.
std::string ExportWords(const PlaceVariable& variable, const std::string& value);

/// "worker 3", "server 0", "scheduler".
std::string ProcessName(tracker::Role role, int task_id);

/// What a plan depends on besides the options.
struct PlanContext {
  tracker::JobAddress address;         ///< where the tracker and the scheduler are found
  FoundCommand command;                ///< what options.command[0] names
  std::vector<std::string> inherited;  ///< names of the variables in dmlc-submit's own environment
  int usable_cores = 1;                ///< here, for workers that run here
  Binding binding = {};                ///< of processes that run here
  std::uint16_t master_port = 0;       ///< on worker 0's host, for torch.distributed
  int report_seconds = 0;              ///< how often workers tell how they are doing; 0: never
};

/// OpenMP's, and therefore XGBoost's.
inline constexpr std::string_view kThreadsVariable = "OMP_NUM_THREADS";

/// How many threads a worker is told to use, by OMP_NUM_THREADS.
enum class Threads {
  kOfUser,  ///< the environment or --env has OMP_NUM_THREADS, or the cluster knows best
  kChosen,  ///< --worker-cores
  kShare,   ///< its share of the cores of its host; where that is not this machine a script finds it out
};
Threads ThreadsOf(const Options& options, const std::vector<std::string>& inherited);

/// What --bind asks of dmlc-submit itself, or what it does without.
Bind BindOf(const Options& options);
/// How many cores of a host that they share are kept from its workers: those that its servers are bound to.
int CoresOfServers(const Options& options, int servers);
/// What of a job is to be bound on a host where so many cores may be used. `omp_num_threads`: the value of
/// the environment there, which --env comes before.
HostProcesses ProcessesToBind(const Options& options, int workers, int servers, int usable_cores,
                              std::string_view omp_num_threads);

/// The processes of the job in the order they are started: scheduler, servers, workers. Throws UsageError
/// when
/// --env names a variable that the job itself sets.
std::vector<PlannedProcess> Plan(const Options& options, const PlanContext& context);

/// The environment additions of a later attempt: DMLC_NUM_ATTEMPT is another.
tracker::Environment EnvironmentOfAttempt(const PlannedProcess& process, int attempt);

/// What the processes of a role have in common: without DMLC_TASK_ID, DMLC_NUM_ATTEMPT and RANK.
tracker::Environment WithoutTask(tracker::Environment environment);

/// Whether the environment says where worker 0 is found by torch.distributed: --env did, or the plan.
bool NamesMaster(const PlannedProcess& process);

/// The processes as commands that can be pasted into a shell, with a comment line before each.
std::string ShowPlan(const std::vector<PlannedProcess>& plan);

}  // namespace warren::submit
