#include "submit/cluster/clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "submit/cluster/kubernetes/entry.h"
#include "submit/cluster/local.h"
#include "submit/cluster/mpi.h"
#include "submit/cluster/sge.h"
#include "submit/cluster/slurm.h"
#include "submit/cluster/ssh.h"
#include "submit/cluster/yarn.h"
#include "tracker/host_address.h"

namespace warren::submit {
namespace {

/// The registry: one row a cluster, all of it in the cluster's own file.
std::vector<ClusterEntry>& Registry() {
  static std::vector<ClusterEntry> registry = {
      LocalEntry(), SshEntry(), MpiEntry(), SlurmEntry(), SgeEntry(), YarnEntry(), KubernetesEntry(),
  };
  return registry;
}

/// Clusters that are gone, and what to use instead.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kRetired = {{
    {"mesos",
     "Apache Mesos was retired in 2025; use kubernetes, slurm or yarn, or ssh with a list of the hosts"},
}};

/// The value of PATH the processes will have, if they run here.
std::string PathOfProcesses(const Options& options) {
  std::string path = SearchPath();
  for (const auto& [name, value] : options.environment) {
    if (name == "PATH") path = value;
  }
  return path;
}

}  // namespace

const std::vector<ClusterEntry>& Clusters() {
  return Registry();
}

ClusterRegistration::ClusterRegistration(ClusterEntry entry) {
  Registry().push_back(std::move(entry));
}

const ClusterEntry& FindCluster(std::string_view name) {
  std::string names;
  for (const ClusterEntry& cluster : Clusters()) {
    if (cluster.name == name) return cluster;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", cluster.name);
  }
  for (const auto& [retired, advice] : kRetired) {
    if (retired == name)
      throw std::runtime_error(fmt::format("'{}' is not supported any more: {}", name, advice));
  }
  throw std::runtime_error(fmt::format("'{}' is none of {}", name, names));
}

const ClusterEntry& ClusterOf(const Options& options) {
  return FindCluster(options.cluster);
}

bool Heeds(const ClusterEntry& cluster, const Option& option) {
  if (option.for_every_cluster) return true;
  const auto& shared = cluster.shared_options;
  const auto& own = cluster.own_options;
  return std::find(shared.begin(), shared.end(), option.name) != shared.end() ||
         std::any_of(own.begin(), own.end(), [&](const Option& one) { return one.name == option.name; });
}

JobHost HostOfJob(const Options& options, int start) {
  const ClusterEntry& cluster = ClusterOf(options);
  if (cluster.own_tracker) {
    JobHost host = cluster.own_tracker(options, start);
    if (host.port != 0) return host;
  }
  if (!options.host_ip.empty()) return {tracker::ResolveHostIp(options.host_ip)};
  return cluster.host(options);
}

std::vector<std::string> KnownHosts(const Options& options) {
  const ClusterEntry& cluster = ClusterOf(options);
  return cluster.known_hosts ? cluster.known_hosts(options) : std::vector<std::string>();
}

FoundCommand CommandOf(const Options& options) {
  const std::string& name = options.command.front();
  try {
    return FindCommand(name, PathOfProcesses(options));
  } catch (const CommandError&) {
    if (ClusterOf(options).runs_here) throw;
    return {name, name, {}};
  }
}

}  // namespace warren::submit
