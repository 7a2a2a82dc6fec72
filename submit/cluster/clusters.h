// The list of clusters: for each how it is made, what --dry-run shows of it, and where the processes find
// the tracker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/options.h"
#include "submit/process/children.h"

namespace warren::submit {

/// `host`: where processes reach this machine. Throws std::runtime_error when the cluster cannot be used from
/// here, UsageError when it is not supported.
std::unique_ptr<Cluster> MakeCluster(boost::asio::io_context& io, Children& children, const Options& options,
                                     const std::string& host, ClusterEvents events);

/// What would be started, as commands or files that can be pasted. Throws like MakeCluster.
std::string ShowCluster(const Options& options, const std::vector<PlannedProcess>& plan,
                        const std::string& host);

/// Where processes reach the tracker, or the scheduler.
struct JobHost {
  std::string address;
  std::string why;         ///< "the route to node1"; empty: nothing to explain
  std::uint16_t port = 0;  ///< where the cluster itself runs it; 0: it runs here
};

/// --host-ip, or else what suits the cluster. `start`: how often the whole job was begun before. Throws
/// std::runtime_error when --host-ip names no address.
JobHost HostOfJob(const Options& options, int start = 0);

/// Names or addresses of all hosts that processes of the job may run on, as far as they are known before the
/// start; else none.
std::vector<std::string> KnownHosts(const Options& options);

/// The command as this cluster is given it: on this machine it must be there, elsewhere it may be.
FoundCommand CommandOf(const Options& options);

}  // namespace warren::submit
