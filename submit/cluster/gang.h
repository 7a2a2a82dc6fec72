// Runs processes that one launcher starts together: mpirun, srun, or the queue of a cluster. A Launch
// (launch.h) contains everything that differs between launchers. Each process is wrapped in an agent
// (scripts/gang.sh), which connects to dmlc-submit (agent_server.h) and starts, watches and stops the process
// on command. A failed process can thus be restarted in its slot, and all processes end with the job. The
// controller (gang_controller.h) makes the decisions; this file runs the launchers, commands and timers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "submit/cluster/action_loop.h"
#include "submit/cluster/agent_server.h"
#include "submit/cluster/cluster.h"
#include "submit/cluster/gang_controller.h"
#include "submit/cluster/launch.h"
#include "submit/cluster/stack_requests.h"
#include "submit/options/options.h"
#include "submit/process/children.h"

namespace warren::submit {

class GangCluster : public Cluster {
 public:
  using MakeLaunch = std::function<Launch(const GangPlan&)>;

  /// `host`: the address at which processes reach this machine. `options` must outlive this object. Throws
  /// std::runtime_error if no port is free for the agents or `host` does not resolve.
  GangCluster(boost::asio::io_context& io, Children& children, const Options& options,
              const std::string& host, ClusterEvents events, MakeLaunch make_launch);
  ~GangCluster() override;

  Started Start(std::size_t index, const PlannedProcess& process, int attempt) override;
  void Stop() override;
  void Kill() override;
  void Dump(std::size_t index, std::function<void(std::string text)> done) override;
  bool busy() const override { return controller_.busy(); }
  void PauseOutput() override { agents_.PauseOutput(); }
  void ResumeOutput() override { agents_.ResumeOutput(); }

 private:
  struct Gang;

  void Do(const StartLauncher& start);
  void Do(const StopLauncher& stop);
  void Do(const KillLauncher& kill);
  void Do(const RemoveFiles& remove);
  void Do(const SetKept& kept);
  void Do(const RunCommand& run);
  void Do(const LaunchProcess& launch);
  void Do(const EndAgent& end);
  void Do(const ClusterEvent& event);
  void LaunchGang(GangId id);
  void TellWhenIdle();

  boost::asio::io_context& io_;
  Children& children_;
  const Options& options_;
  ClusterEvents events_;
  MakeLaunch make_launch_;
  std::string host_;
  std::string job_mark_;
  std::string agent_key_;
  StackRequests stack_requests_;
  AgentServer agents_;
  GangController controller_;
  std::vector<Gang> gangs_;
  ActionLoop<GangController, GangAction> loop_;
};

/// The first and the last port that the agents' listener tries. --port itself is left to the tracker or the
/// scheduler, if possible; unless --port-end is given, the next port is always in the range.
std::pair<std::uint16_t, std::uint16_t> PortsOfAgents(const Options& options);

/// Makes the output of --dry-run.
std::string ShowGangs(const Options& options, const std::vector<PlannedProcess>& plan,
                      const std::string& host, const GangCluster::MakeLaunch& make_launch);

}  // namespace warren::submit
