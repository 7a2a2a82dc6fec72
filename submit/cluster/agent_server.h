// The rendezvous port of a gang. On other hosts, launchers such as mpirun, srun and qsub start an agent
// (scripts/gang.sh) for each process, and the agents connect here. agent_sessions.h implements the protocol;
// this file adds the sockets and the clock.
//
// With agents, the output of each process arrives separately and unchanged, even if the launcher would merge
// or edit it; the end of a process is noticed immediately; and when dmlc-submit ends, so do the processes,
// although none of them is its child.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "submit/cluster/action_loop.h"
#include "submit/cluster/agent_sessions.h"

namespace warren::submit {

class AgentServer {
 public:
  /// Listens for the agents of `num_processes` processes, on the first free port from `port` to `port_end`,
  /// at the address that tracker::BindAddressFor returns for `host`. `on_event` is called from the io_context
  /// and may call the functions below. Throws std::runtime_error if no port is free or `host` does not
  /// resolve.
  AgentServer(boost::asio::io_context& io, const std::string& job_mark, const std::string& key,
              std::size_t num_processes, const std::string& host, std::uint16_t port, std::uint16_t port_end,
              std::function<void(const AgentEvent&)> on_event);
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  std::uint16_t port() const;
  /// These functions are documented in AgentSessions.
  void Launch(std::size_t index, int attempt, std::uint16_t port, const std::string& master);
  bool AskForStacks(std::size_t index);
  void End(std::size_t index);
  void PauseOutput() { sessions_.PauseOutput(); }
  void ResumeOutput();

 private:
  struct Connection;

  void Listen(const std::string& host, std::uint16_t port, std::uint16_t port_end);
  void Accept();
  void Read(ConnectionId id);
  void OnReadable(ConnectionId id, Connection& connection, boost::system::error_code error);
  void Write(ConnectionId id, std::string bytes);
  void WriteNext(const std::shared_ptr<Connection>& connection);
  void Do(const AgentSend& send);
  void Do(const AgentHeartbeat& heartbeat);
  void Do(const AgentEndSending& end);
  void Do(const AgentRead& read);
  void Do(const AgentClose& close);
  void Do(const AgentEvent& event);
  std::shared_ptr<Connection> Find(ConnectionId id) const;

  std::function<void(const AgentEvent&)> on_event_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer accept_pause_;
  bool warned_of_shortage_ = false;
  AgentSessions sessions_;
  ActionLoop<AgentSessions, AgentAction> loop_;
  std::map<ConnectionId, std::shared_ptr<Connection>> connections_;
  ConnectionId last_connection_ = 0;
};

}  // namespace warren::submit
