// The registry of clusters, and what the rest of dmlc-submit asks it. docs/explanation/extending.md shows how
// one is added.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/command.h"
#include "submit/options.h"

namespace warren::submit {

/// Every cluster, in the order of the registry.
const std::vector<ClusterEntry>& Clusters();

/// A cluster of somebody else's program that is otherwise dmlc-submit (program.h): a variable of this type
/// with static storage adds it.
class ClusterRegistration {
 public:
  explicit ClusterRegistration(ClusterEntry entry);
};

/// The cluster that --cluster calls so. Throws std::runtime_error that lists the possible names, or says what
/// to use in place of one that is gone.
const ClusterEntry& FindCluster(std::string_view name);
/// That of the options.
const ClusterEntry& ClusterOf(const Options& options);

/// Whether this option does something on the cluster.
bool Heeds(const ClusterEntry& cluster, const Option& option);

/// --host-ip, or else what suits the cluster. `start`: how often the whole job was begun before. Throws
/// std::runtime_error when --host-ip names no address.
JobHost HostOfJob(const Options& options, int start = 0);

/// Names or addresses of all hosts that processes of the job may run on, as far as they are known before the
/// start; else none.
std::vector<std::string> KnownHosts(const Options& options);

/// The command as this cluster is given it: on this machine it must be there, elsewhere it may be.
FoundCommand CommandOf(const Options& options);

}  // namespace warren::submit
