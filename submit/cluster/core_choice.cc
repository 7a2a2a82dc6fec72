#include "submit/cluster/core_choice.h"

#include <algorithm>
#include <charconv>

#include "submit/cluster/clusters.h"
#include "submit/process/planned_process.h"

namespace warren::submit {

Threads ThreadsOf(const Options& options, const std::vector<std::string>& inherited) {
  const bool is_set = HasVariable(options.environment, kThreadsVariable) ||
                      std::find(inherited.begin(), inherited.end(), kThreadsVariable) != inherited.end();
  if (is_set) return Threads::kOfUser;
  if (options.worker_cores_were_chosen) return Threads::kChosen;
  const bool shares = ClusterOf(options).core_sharing != CoreSharing::kNone;
  return shares ? Threads::kShare : Threads::kOfUser;
}

Bind BindOf(const Options& options) {
  return options.bind.value_or(kDefaultBind);
}

int CoresOfServers(const Options& options, int servers) {
  return BindOf(options) == Bind::kNone ? 0 : servers;
}

int ThreadsOfWorker(const Options& options, int workers, int servers, int usable_cores) {
  return std::max(1, (usable_cores - CoresOfServers(options, servers)) / std::max(1, workers));
}

HostProcesses ProcessesToBind(const Options& options, int workers, int servers, int usable_cores,
                              std::string_view omp_num_threads) {
  const auto chosen = FindVariable(options.environment, kThreadsVariable);
  if (chosen) omp_num_threads = *chosen;
  HostProcesses processes{.workers = workers, .servers = servers};
  const auto [end, error] = std::from_chars(
      omp_num_threads.data(), omp_num_threads.data() + omp_num_threads.size(), processes.threads);
  // A list such as "4,2" is for nested parallel regions; the first number counts.
  if (error == std::errc{} && processes.threads > 0) return processes;
  processes.threads = options.worker_cores_were_chosen
                          ? options.worker_cores
                          : ThreadsOfWorker(options, workers, servers, usable_cores);
  return processes;
}

}  // namespace warren::submit
