// --cluster ssh: starts each process with its own OpenSSH client on a host of the host file.
//
// The user's ssh configuration applies (keys, ports, jump hosts, connections that are already shared). The
// script that contains the command and its environment is passed to a remote `sh` through standard input, so
// that process lists do not show the script. The controller (ssh_controller.h) makes the decisions; this file
// runs ssh and rsync.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "submit/cluster/action_loop.h"
#include "submit/cluster/cluster.h"
#include "submit/cluster/host_file.h"
#include "submit/cluster/host_source.h"
#include "submit/cluster/ssh_controller.h"
#include "submit/cluster/ssh_places.h"
#include "submit/cluster/stack_requests.h"
#include "submit/options/options.h"
#include "submit/process/children.h"
#include "tracker/host_address.h"

namespace warren::submit {

class SshCluster : public Cluster {
 public:
  /// Reads the host file or the output of the discovery script. Throws std::runtime_error if the file is
  /// invalid, or if its hosts may not run enough processes: because of max_slots or, in an elastic job,
  /// because they have too few slots. In an elastic job, the file is read again, or the script is run again,
  /// during the job. `options` must outlive this object.
  SshCluster(boost::asio::io_context& io, Children& children, const Options& options, ClusterEvents events);
  ~SshCluster() override;

  void Prepare(const std::function<void()>& ready) override;
  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  void AskToLeave(std::size_t index) override;
  void Dump(std::size_t index, std::function<void(std::string text)> done) override;
  bool busy() const override { return !copies_.empty(); }

 private:
  bool is_elastic() const { return options_.min_workers.has_value(); }
  void TakeHosts(std::vector<Host> hosts);
  std::size_t HostFor(std::size_t index, const PlannedProcess& process);
  std::size_t PlaceOfProcess(std::size_t index) const;

  void Do(const CopyToHost& copy);
  void Do(const StopCopies& stop);
  void Do(const HostsReady& ready);
  void Do(const ConnectSsh& connect);
  void Do(const SendCores& send);
  void Do(const SendLine& send);
  void Do(const EndInput& end);
  void Do(const StopSsh& stop);
  void Do(const KillSshs& kill);
  void Do(const StacksArrived& stacks);
  void Do(const ClusterEvent& event);

  Children& children_;
  const Options& options_;
  ClusterEvents events_;
  std::string job_mark_;
  std::vector<Host> hosts_;      ///< in an elastic job, all hosts so far, each with the most slots it has had
  std::vector<HostRoom> rooms_;  ///< the current hosts of an elastic job
  std::vector<std::size_t> places_;  ///< the index of the host for each slot
  MovedWorkers moved_;
  /// In an elastic job, the host index and the slot of each process that has been started, by process index.
  std::map<std::size_t, std::pair<std::size_t, int>> slot_of_;
  /// The address at which the other workers reach worker 0 or, in an elastic job, the worker that was started
  /// first.
  std::string master_;
  std::size_t master_host_ = 0;  ///< the index of its host
  /// For each host, whether a message has explained why its processes are not bound.
  std::vector<bool> told_not_bound_;
  std::function<void()> ready_;
  std::map<SshId, pid_t> pids_;
  std::set<pid_t> copies_;
  StackRequests stack_requests_;
  std::optional<HostSource> source_;  ///< only in an elastic job
  SshController controller_;
  ActionLoop<SshController, SshAction> loop_;
};

/// The names or addresses that ssh, according to its configuration, connects to for the job's hosts.
std::vector<std::string> SshHosts(const Options& options);

/// The address at which the processes reach this machine, as tracker::AddressTowards finds it for the job's
/// hosts.
tracker::Reached RouteToSshHosts(const Options& options);

/// Makes the output of --dry-run: the commands that copy files and, for each process, the ssh command and its
/// standard input.
std::string ShowSsh(const Options& options, const std::vector<PlannedProcess>& plan);

/// The cluster's row in the registry.
ClusterEntry SshEntry();

}  // namespace warren::submit
