// The numbers of cores and threads of a host's processes, and whether the processes are bound, as determined
// by the options and the cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "submit/options/options.h"
#include "submit/process/binding.h"

namespace warren::submit {

/// OpenMP's variable for the number of threads, which XGBoost also obeys.
inline constexpr std::string_view kThreadsVariable = "OMP_NUM_THREADS";

/// The source of a worker's number of threads (OMP_NUM_THREADS).
enum class Threads {
  kOfUser,  ///< the user (in the environment or with --env) or, if the user does not set it, the cluster
  kChosen,  ///< --worker-cores
  kShare,   ///< the worker's share of the host's cores; on other hosts, a script determines it
};
/// `inherited`: the names of the variables in dmlc-submit's own environment.
Threads ThreadsOf(const Options& options, const std::vector<std::string>& inherited);

/// The value of --bind, or its default, for processes that dmlc-submit itself binds.
Bind BindOf(const Options& options);
/// The number of cores that the workers on a host leave to the servers there: one for each server, or 0 if
/// processes are not bound.
int CoresOfServers(const Options& options, int servers);
/// The threads of each worker on a host with this many usable cores: an equal share of those that are not
/// left to servers, at least 1. Without it, OpenMP would use all cores in each worker.
int ThreadsOfWorker(const Options& options, int workers, int servers, int usable_cores);
/// The processes to bind on a host with this many usable cores. `omp_num_threads`: the value of
/// OMP_NUM_THREADS in the host's environment; a value set with --env takes precedence.
HostProcesses ProcessesToBind(const Options& options, int workers, int servers, int usable_cores,
                              std::string_view omp_num_threads);

}  // namespace warren::submit
