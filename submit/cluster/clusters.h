// The registry of clusters, and the functions that query it. docs/explanation/extending.md shows how to add a
// cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/options/options.h"
#include "submit/options/table.h"
#include "submit/process/command.h"

namespace warren::submit {

/// All clusters, in the order of the registry.
const std::vector<ClusterEntry>& Clusters();

/// The options of dmlc-submit, including those of all clusters.
const OptionTable& AllOptions();

/// Registers an additional cluster in a third-party program that extends dmlc-submit (job/program.h). Define
/// a variable of this type with static storage duration.
class ClusterRegistration {
 public:
  explicit ClusterRegistration(ClusterEntry entry);
};

/// The cluster with this --cluster name. If there is none, throws a std::runtime_error that lists the
/// possible names or, for a retired cluster, suggests others.
const ClusterEntry& FindCluster(std::string_view name);
/// The cluster that the options name. Throws like FindCluster.
const ClusterEntry& ClusterOf(const Options& options);

/// The address at which processes reach the job's tracker or scheduler: the address in the cluster if the
/// cluster runs the tracker or scheduler, else --host-ip, else an address of this machine that suits the
/// cluster. `start`: the number of earlier starts of the whole job. Throws std::runtime_error if --host-ip
/// does not name an address, or if the cluster cannot find an address, e.g. because its host file is invalid.
JobHost HostOfJob(const Options& options, int start = 0);

/// The names or addresses of all hosts that processes of the job may run on, if they are known before the
/// start; otherwise empty. Throws std::runtime_error if the cluster cannot find them, e.g. because its host
/// file is invalid.
std::vector<std::string> KnownHosts(const Options& options);

/// The job's command for the cluster that the options name. Throws CommandError if the processes run on this
/// machine and the command cannot be run here.
FoundCommand CommandOf(const Options& options);

}  // namespace warren::submit
