// The protocol between dmlc-submit and the agents of a gang (scripts/gang.sh), without its sockets. An agent
// is the wrapper script of a remote process; it has two connections to dmlc-submit. "out", which is opened
// anew for each attempt, carries the process's standard output. "err" carries its standard error, interleaved
// with messages (agent_messages.h), and in the opposite direction the commands for the agent: "go ATTEMPT
// PORT MASTER" starts the process, "stacks" requests its stacks, "done" ends the wait for more output of a
// process that has ended, and an empty line is a heartbeat. When "err" closes, or no line arrives on it for a
// minute, the agent ends the process.
//
// A state machine without I/O: connections are numbers, and the time is an argument. Inputs: a connection was
// opened, received bytes or was closed; time has passed; the gang requests that an agent launch its process,
// report its stacks or end, or that output be paused or resumed. Outputs, in order, through TakeActions:
// bytes to send, connections to read or close, and events for the gang. The end of a process is reported
// after all of its output. The sockets and the clock are in agent_server.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "submit/cluster/agent_messages.h"
#include "submit/process/stream.h"
#include "tracker/action.h"

namespace warren::submit {

using tracker::ConnectionId;
using tracker::TimePoint;

/// An agent has connected and is waiting for Launch. It replaces an earlier agent if the launcher has started
/// the same process again.
struct AgentArrived {
  std::size_t index;         ///< index of the agent's process in the plan
  std::string host;          ///< the host name that the agent reports
  std::string address = {};  ///< the address from which the agent has connected
};
struct AgentOutput {
  std::size_t index;
  Stream stream;
  std::string bytes;
};
/// A message from the agent (see scripts/gang.sh). When it is "exit" or "stopped", all output of the process
/// has already been passed on.
struct AgentSaid {
  std::size_t index;
  AgentMessage message;
};
/// The agent's connections have closed, or another agent has replaced it. Only output already in transit may
/// follow.
struct AgentLeft {
  std::size_t index;
};
/// A peer claims to be the agent of this process and unable to read the job's key. It has sent only the job
/// mark, which does not prove that it belongs to the job.
struct AgentKeyless {
  std::size_t index;
  std::string host;
};
using AgentEvent = std::variant<AgentArrived, AgentOutput, AgentSaid, AgentLeft, AgentKeyless>;

/// Send these bytes.
struct AgentSend {
  ConnectionId connection;
  std::string bytes;
};
/// Send an empty line as a sign of life, unless something else is being sent.
struct AgentHeartbeat {
  ConnectionId connection;
};
/// Stop sending, but continue to read.
struct AgentEndSending {
  ConnectionId connection;
};
/// Resume reading from the connection if reading has stopped because WantsBytes returned false.
struct AgentRead {
  ConnectionId connection;
};
struct AgentClose {
  ConnectionId connection;
};
using AgentAction =
    std::variant<AgentSend, AgentHeartbeat, AgentEndSending, AgentRead, AgentClose, AgentEvent>;

class AgentSessions {
 public:
  /// `key`: the secret by which each connection of this job's agents identifies itself, in its first line.
  /// `max_pending`: the maximum number of unidentified connections; if there are more, the oldest is closed.
  AgentSessions(const std::string& job_mark, std::string key, std::size_t max_pending, TimePoint now);

  /// `connection`: must be greater than all earlier connection numbers; `address`: the peer's address.
  void Opened(ConnectionId connection, const std::string& address, TimePoint now);
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  /// Call when the peer has closed the connection or the connection has failed.
  void Closed(ConnectionId connection);
  void Tick(TimePoint now);
  /// When Tick must next be called.
  TimePoint NextDeadline() const;
  /// Closes the oldest unidentified connection, if any. Call if no more connections can be accepted.
  void DropOldestPending();
  /// Returns false while bytes from this connection must be left unread, which ends with the action
  /// AgentRead. Also returns false for unknown connections.
  bool WantsBytes(ConnectionId connection) const;

  /// Makes the agent start its process; does nothing if the agent is not connected. `port`: the port of the
  /// tracker or the scheduler, or 0 if none exists; `master`: the address of worker 0's host, or empty if
  /// unknown.
  void Launch(std::size_t index, int attempt, std::uint16_t port, const std::string& master);
  /// Makes the agent report the stacks of its process, if the process is running. Returns false if the agent
  /// is not connected.
  bool AskForStacks(std::size_t index);
  /// Makes the agent end its process and itself; AgentLeft follows. Does nothing if there is no such agent.
  void End(std::size_t index);
  /// Holds output back until ResumeOutput or the end of its process; beyond 64 KiB per connection, the output
  /// is left unread. Output that arrives from processes that were told to end is dropped.
  void PauseOutput() { paused_ = true; }
  void ResumeOutput(TimePoint now);

  std::vector<AgentAction> TakeActions() { return std::exchange(actions_, {}); }

 private:
  struct Agent;
  struct Connection {
    std::string address;
    std::string hello = {};
    std::shared_ptr<Agent> agent = {};  ///< set once the peer has identified itself
    Stream stream = Stream::kErr;
    std::string line = {};  ///< the output held back: an unfinished line or, during a pause, all output
  };
  enum class Timer { kHello, kLine, kDrain };
  using TimerKey = std::pair<ConnectionId, Timer>;

  bool Has(const std::optional<ConnectionId>& connection) const;
  bool OutIsOver(const Agent& agent) const;
  void ReadHello(ConnectionId connection, TimePoint now);
  void Drop(ConnectionId connection);
  void OnBytes(ConnectionId connection, std::string_view bytes, TimePoint now);
  void HandOn(ConnectionId connection, std::string_view bytes, TimePoint now);
  void HandRestOn(ConnectionId connection);
  void HandMessagesOn(Agent& agent);
  void Drain(const Agent& agent, TimePoint now);
  void OnDrained(Agent& agent, TimePoint now);
  bool Send(std::size_t index, std::string command);
  void OnTimer(const TimerKey& key, TimePoint now);
  void SetTimer(const TimerKey& key, TimePoint when);
  void ClearTimer(const TimerKey& key);
  template <typename Event>
  void Tell(Event event) {
    actions_.emplace_back(std::in_place_type<AgentEvent>, std::move(event));
  }

  std::string job_mark_;
  std::string key_;
  std::size_t max_pending_;
  std::map<ConnectionId, Connection> connections_;
  std::set<ConnectionId> pending_;                        ///< unidentified connections, oldest first
  std::map<std::size_t, std::shared_ptr<Agent>> agents_;  ///< by process index
  std::map<TimerKey, TimePoint> timers_;
  std::set<std::pair<TimePoint, TimerKey>> deadlines_;
  TimePoint heartbeat_;
  bool paused_ = false;
  std::vector<AgentAction> actions_;
};

}  // namespace warren::submit
