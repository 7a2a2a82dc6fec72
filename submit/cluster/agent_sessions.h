// What the agents of a gang say and are told: the protocol of scripts/gang.sh without its sockets. An agent
// is the script around a process elsewhere; it has two connections to dmlc-submit. One carries what the
// process writes to standard output; the other its standard error with messages (agent_messages.h) in
// between, and back to the agent "go ATTEMPT PORT MASTER", which makes it start the process, and an empty
// line now and then, and "stacks", which makes it tell where its process is in its program. The end of that
// one makes the agent end the process.
//
// A state machine over values. Connections are numbers, time is an argument. In: a connection was opened,
// brought bytes, closed; time has passed; and, from the gang, which agents are to launch or to end. Out, in
// order, by TakeActions: bytes to send, connections to close, and for the gang what became of each agent. The
// end of a process is told behind all that it wrote. No sockets, threads or clocks: those are in
// agent_server.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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

/// An agent is there, and waits for Launch. It may be another one than before: the launcher started it anew.
struct AgentArrived {
  std::size_t index;         ///< of its process in the plan
  std::string host;          ///< as it calls itself
  std::string address = {};  ///< that it called from
};
/// What the process wrote.
struct AgentOutput {
  std::size_t index;
  Stream stream;
  std::string bytes;
};
/// "start", "usage", "stack", "stacks", "exit", "stopped" or "fail" (see scripts/gang.sh); all output that
/// came before it was handed on.
struct AgentSaid {
  std::size_t index;
  AgentMessage message;
};
/// Its connections have ended. Nothing of it follows but output that was on its way.
struct AgentLeft {
  std::size_t index;
};
/// Somebody who knows the job's mark, but not its key, says that he is the agent of this process.
struct AgentKeyless {
  std::size_t index;
  std::string host;
};
using AgentEvent = std::variant<AgentArrived, AgentOutput, AgentSaid, AgentLeft, AgentKeyless>;

/// To be sent.
struct AgentSend {
  ConnectionId connection;
  std::string bytes;
};
/// An empty line, if nothing else is being sent: dmlc-submit is there.
struct AgentHeartbeat {
  ConnectionId connection;
};
/// Nothing will be sent any more; what comes is still read.
struct AgentEndSending {
  ConnectionId connection;
};
/// It was left alone (WantsBytes), and is to be read again.
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
  /// Whoever knows `key` is an agent of this job. `max_pending`: connections that have not said who they are;
  /// beyond, the oldest goes. An agent says it as soon as it has connected.
  AgentSessions(const std::string& job_mark, std::string key, std::size_t max_pending, TimePoint now);

  /// `connection`: a higher number than those before; `address`: whose it is.
  void Opened(ConnectionId connection, const std::string& address, TimePoint now);
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  /// The peer closed, or the connection broke.
  void Closed(ConnectionId connection);
  void Tick(TimePoint now);
  /// When Tick has something to do next.
  TimePoint NextDeadline() const;
  /// Makes room when the process can take no more connections.
  void DropOldestPending();
  /// False while what this connection brings is to be left where it is; AgentRead follows.
  bool WantsBytes(ConnectionId connection) const;

  /// Makes the agent start its process. `port` is that of the tracker or the scheduler; `master`: the address
  /// of worker 0's host, if it is known.
  void Launch(std::size_t index, int attempt, std::uint16_t port, const std::string& master);
  /// Makes the agent tell its stacks, if it is there and has a process: false, it is not there.
  bool AskForStacks(std::size_t index);
  /// Makes the agent end its process and itself; AgentLeft follows.
  void End(std::size_t index);
  /// From here to ResumeOutput what agents send is left unread.
  void PauseOutput() { paused_ = true; }
  void ResumeOutput(TimePoint now);

  std::vector<AgentAction> TakeActions() { return std::exchange(actions_, {}); }

 private:
  struct Agent;
  struct Connection {
    std::string address;
    std::string hello = {};
    std::shared_ptr<Agent> agent = {};  ///< once it has said whose it is; none: it is pending
    Stream stream = Stream::kErr;
    std::string line = {};  ///< the beginning of one whose end has not come
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
  std::set<ConnectionId> pending_;                        ///< oldest first
  std::map<std::size_t, std::shared_ptr<Agent>> agents_;  ///< by index
  std::map<TimerKey, TimePoint> timers_;
  std::set<std::pair<TimePoint, TimerKey>> deadlines_;
  TimePoint heartbeat_;
  bool paused_ = false;
  std::vector<AgentAction> actions_;
};

}  // namespace warren::submit
