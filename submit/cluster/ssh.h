// --cluster ssh: starts each process with its own OpenSSH client on a host of the host file.
//
// The user's ssh configuration applies (keys, ports, jump hosts, connections that are already shared). The
// command does not show up in a remote process list: it is passed to a remote `sh` through standard input.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "submit/cluster/cluster.h"
#include "submit/cluster/host_file.h"
#include "submit/cluster/stack_requests.h"
#include "submit/options/options.h"
#include "submit/process/children.h"
#include "tracker/host_address.h"

namespace warren::submit {

/// How many connections to one host are made at a time: sshd drops some if there are more than 10 (its
/// MaxStartups).
inline constexpr int kConnectingAtOnce = 8;
/// How many hosts are copied to at a time.
inline constexpr std::size_t kCopyingAtOnce = 16;

class SshCluster : public Cluster {
 public:
  /// Reads the host file. Throws std::runtime_error.
  SshCluster(boost::asio::io_context& io, Children& children, const Options& options, ClusterEvents events);
  ~SshCluster() override;

  void Prepare(const std::function<void()>& ready) override;
  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  void Dump(std::size_t index, std::function<void(std::string text)> done) override;

 private:
  struct Place;
  struct Session;
  struct Copying;

  std::size_t ChooseHost(std::size_t index);
  void ConnectNext(std::size_t host);
  void Connect(const std::shared_ptr<Session>& session);
  void Connected(Session& session);
  void OnMessage(Session& session, const struct AgentMessage& message);
  void AnswerWithCores(Session& session, const std::string& said);
  void OnExit(const std::shared_ptr<Session>& session, const ExitStatus& status);
  ExitStatus Explain(const Session& session, const ExitStatus& status);
  void CopyNext(const std::shared_ptr<Copying>& copying);
  void Beat();

  boost::asio::io_context& io_;
  Children& children_;
  const Options& options_;
  ClusterEvents events_;
  std::string job_mark_;
  std::vector<Place> hosts_;
  std::vector<std::size_t> places_;  ///< the index of the host for each slot
  std::string master_;               ///< the address at which the other workers reach worker 0
  std::map<std::size_t, std::shared_ptr<Session>> sessions_;  ///< by process index
  std::set<pid_t> copies_;
  StackRequests stack_requests_;
  boost::asio::steady_timer beat_;
  boost::asio::steady_timer patience_;
  bool stopping_ = false;
};

/// The hosts of the job, by the names that ssh connects to.
std::vector<std::string> SshHosts(const Options& options);

/// The address at which its processes reach this machine: the one on the route to the first host.
tracker::Reached RouteToSshHosts(const Options& options);

/// The output of --dry-run: for each process, the ssh command and the script it is given.
std::string ShowSsh(const Options& options, const std::vector<PlannedProcess>& plan);

/// Its row in the registry of clusters.
ClusterEntry SshEntry();

}  // namespace warren::submit
