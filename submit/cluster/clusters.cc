#include "submit/cluster/clusters.h"

#include <fmt/format.h>

#include "submit/cluster/gang.h"
#include "submit/cluster/kubernetes/kubernetes.h"
#include "submit/cluster/kubernetes/manifest.h"
#include "submit/cluster/local.h"
#include "submit/cluster/mpi.h"
#include "submit/cluster/sge.h"
#include "submit/cluster/slurm.h"
#include "submit/cluster/ssh.h"
#include "submit/cluster/yarn.h"
#include "tracker/host_address.h"

namespace warren::submit {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

UsageError NoMesos() {
  return UsageError(
      "--cluster mesos is not supported: Apache Mesos was retired in 2025; use kubernetes, slurm or yarn, or "
      "ssh "
      "with a list of the hosts");
}

/// The value of PATH the processes will have, if they run here.
std::string PathOfProcesses(const Options& options) {
  std::string path = SearchPath();
  for (const auto& [name, value] : options.environment) {
    if (name == "PATH") path = value;
  }
  return path;
}

JobHost ReachedBy(const tracker::Reached& reached) {
  if (reached.address == kLoopback) return {reached.address, {}};
  return {reached.address,
          reached.by.empty() ? "the default route" : fmt::format("the route to {}", reached.by)};
}

/// How the cluster of the options starts its processes, where it starts all at once.
GangCluster::MakeLaunch LaunchesOf(const Options& options) {
  switch (options.cluster) {
    case kSlurm:
      return [inside = InSlurmAllocation()](const GangPlan& plan) { return SlurmLaunch(plan, inside); };
    case kSge:
      return SgeLaunch;
    case kYarn:
      return [jar = FindDistributedShell(options)](const GangPlan& plan) { return YarnLaunch(plan, jar); };
    default:
      return [setting = FindMpi(options)](const GangPlan& plan) { return MpiLaunch(setting, plan); };
  }
}

}  // namespace

std::unique_ptr<Cluster> MakeCluster(boost::asio::io_context& io, Children& children, const Options& options,
                                     const std::string& host, ClusterEvents events) {
  switch (options.cluster) {
    case kLocal:
      return std::make_unique<LocalCluster>(children, std::move(events));
    case kSsh:
      return std::make_unique<SshCluster>(io, children, options, std::move(events));
    case kMpi:
    case kSlurm:
    case kSge:
    case kYarn:
      return std::make_unique<GangCluster>(io, children, options, host, std::move(events),
                                           LaunchesOf(options));
    case kKubernetes:
      return std::make_unique<KubernetesCluster>(io, children, options, std::move(events));
    default:
      throw NoMesos();
  }
}

std::string ShowCluster(const Options& options, const std::vector<PlannedProcess>& plan,
                        const std::string& host) {
  switch (options.cluster) {
    case kLocal:
      return ShowPlan(plan);
    case kSsh:
      return ShowSsh(options, plan);
    case kMpi:
    case kSlurm:
    case kSge:
    case kYarn:
      return ShowGangs(options, plan, host, LaunchesOf(options));
    case kKubernetes:
      return ShowKubernetes(options, plan);
    default:
      throw NoMesos();
  }
}

JobHost HostOfJob(const Options& options, int start) {
  if (options.cluster == kKubernetes && (options.num_servers > 0 || TrackerIsAPod(options))) {
    return {KubernetesHost(options, start), {}, KubernetesPort(options)};
  }
  if (!options.host_ip.empty()) return {tracker::ResolveHostIp(options.host_ip), {}};
  switch (options.cluster) {
    case kLocal:
      return {kLoopback, {}};
    case kSsh:
      return ReachedBy(RouteToSshHosts(options));
    case kMpi:
      return ReachedBy(RouteToMpiHosts(options));
    case kSlurm:
      return ReachedBy(RouteToSlurmNodes(options));
    case kSge:
      return ReachedBy(RouteToSgeHosts());
    case kYarn:
      return ReachedBy({tracker::ResolveHostIp("auto"), ""});
    case kKubernetes:
      return {};
    default:
      throw NoMesos();
  }
}

std::vector<std::string> KnownHosts(const Options& options) {
  switch (options.cluster) {
    case kLocal:
      return {kLoopback};
    case kSsh:
      return SshHosts(options);
    case kMpi:
      return MpiHostNames(options);
    case kSlurm:
      return InSlurmAllocation() ? SlurmNodes(options) : std::vector<std::string>();
    default:
      return {};
  }
}

FoundCommand CommandOf(const Options& options) {
  const std::string& name = options.command.front();
  try {
    return FindCommand(name, PathOfProcesses(options));
  } catch (const CommandError&) {
    if (options.cluster == kLocal) throw;
    return {name, name, {}};
  }
}

}  // namespace warren::submit
