// The agents' protocol without sockets, over the whole life of each agent: bytes are split at random,
// connections break at any moment, strangers connect, and output is paused and resumed. Failure messages
// include the seed.
#include "submit/cluster/agent_sessions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/random_cases.h"

namespace warren::submit {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

constexpr char kSessionMark[] = "wmark";
constexpr char kKey[] = "0123456789abcdef";

std::string MessageBytes(std::size_t index, const std::string& words) {
  return fmt::format("\036{} {} {}\036\n", kSessionMark, index, words);
}

/// Simulated agents, each with up to two connections, and the bytes that each connection will still deliver.
class AgentWorld {
 public:
  explicit AgentWorld(unsigned seed)
      : random_(seed),
        sessions_(kSessionMark, kKey, kMaxPending, now_),
        agents_(static_cast<std::size_t>(Between(1, 4))) {}

  void Run() {
    for (std::size_t i = 0; i < agents_.size(); ++i) Begin(i);
    for (int step = 0; step < 20'000 && !AllAreOver(); ++step) Step();
    paused_ = false;
    sessions_.ResumeOutput(now_);
    Perform();
    for (int step = 0; step < 50'000 && !(AllAreOver() && AllBytesHaveCome()); ++step) Step(false);
    ASSERT_TRUE(AllAreOver()) << "agents stay" << Describe();
    for (std::size_t i = 0; i < agents_.size(); ++i) ExpectWhole(i);
    const TimePoint end = now_ + std::chrono::minutes(1);
    while (now_ < end) PassTime();  // time for strangers to be dropped
    EXPECT_TRUE(connections_.empty()) << "connections stay" << Describe();
  }

 private:
  static constexpr std::size_t kMaxPending = 4;

  struct Connection {
    std::string to_come;
    std::size_t hello = 0;  ///< bytes of the first line, the hello, that are still to be delivered
    bool closes = false;    ///< whether the connection closes after `to_come`
    std::optional<std::size_t> index = {};
    bool is_err = false;
    bool left_alone = false;  ///< whether the sessions declined its bytes at the last attempt
  };

  /// A remote process and the script that runs it.
  struct Agent {
    int call = 0;
    std::optional<ConnectionId> err, out;
    bool is_here = false;  ///< between AgentArrived and AgentLeft
    int processes = 0;
    std::string wrote[2];  ///< stdout and stderr of its processes
    std::string came[2];   ///< stdout and stderr as passed on by the sessions
    bool breaks = false;   ///< whether a connection broke, so output may be lost
    bool ended = false;    ///< whether the process has ended and its agent has queued the report
    bool end_was_told = false;
    bool told_to_end = false;
    bool over = false;
  };

  int Between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool Chance(int percent) { return Between(1, 100) <= percent; }

  ConnectionId Open(std::string bytes) {
    const ConnectionId id = ++last_connection_;
    connections_[id].hello = bytes.size();
    connections_[id].to_come = std::move(bytes);
    sessions_.Opened(id, "10.0.0.1", now_);
    return id;
  }

  std::string Hello(std::size_t index, const char* stream) {
    return fmt::format("{} {} {} call{} host\n", kKey, index, stream, agents_[index].call);
  }

  void Begin(std::size_t index) {
    Agent& agent = agents_[index];
    const int call = agent.call + 1;
    agent = Agent();
    agent.call = call;
    agent.err = Open(Hello(index, "err"));
    connections_[*agent.err].index = index;
    connections_[*agent.err].is_err = true;
  }

  bool AllAreOver() const {
    return std::all_of(agents_.begin(), agents_.end(), [](const Agent& agent) { return agent.over; });
  }

  bool AllBytesHaveCome() const {
    return std::none_of(connections_.begin(), connections_.end(),
                        [](const auto& connection) { return connection.second.index.has_value(); });
  }

  void Step(bool with_trouble = true) {
    switch (Between(0, with_trouble ? 12 : 5)) {
      case 0:
        PassTime();
        break;
      case 7:
        if (Chance(10)) Pause();
        break;
      case 8:
        if (Chance(10)) Visit();
        break;
      case 9:
        if (Chance(2)) Break();
        break;
      case 10:
        if (Chance(2)) End(static_cast<std::size_t>(Between(0, static_cast<int>(agents_.size()) - 1)));
        break;
      case 11:
        if (Chance(1)) sessions_.DropOldestPending();
        break;
      default:
        Bring();
    }
    Perform();
  }

  void PassTime() {
    now_ += milliseconds(Between(1, 400));
    sessions_.Tick(now_);
    EXPECT_GT(sessions_.NextDeadline(), now_) << "a deadline that has passed stays";
    Perform();
  }

  void Pause() {
    paused_ = !paused_;
    if (paused_) {
      sessions_.PauseOutput();
    } else {
      sessions_.ResumeOutput(now_);
    }
  }

  /// Opens a connection from a client that is not an agent of this job.
  void Visit() {
    const std::string words[] = {
        "", "GET / HTTP/1.1\r\n\r\n", std::string(3000, 'x'),
        fmt::format("{} 0 err call host\n", kSessionMark),
        fmt::format("{} 0 err call host\n\036{} 0 exit 0 0\036\n", std::string(16, '0'), kSessionMark)};
    Open(words[Between(0, 4)]);
  }

  void Break() {
    if (connections_.empty()) return;
    auto one = std::next(connections_.begin(), Between(0, static_cast<int>(connections_.size()) - 1));
    if (one->second.index) {
      Agent& agent = agents_[*one->second.index];
      agent.breaks = true;
      // If the connection for stderr breaks before the end of its hello, there is no AgentArrived event.
      agent.over = agent.over || (one->second.is_err && one->second.hello > 0);
    }
    CloseNow(one->first);
  }

  void End(std::size_t index) {
    if (!agents_[index].is_here) return;
    agents_[index].told_to_end = true;
    sessions_.End(index);
  }

  /// Lets one connection deliver a piece of its bytes, or close.
  void Bring() {
    if (connections_.empty()) return;
    auto one = std::next(connections_.begin(), Between(0, static_cast<int>(connections_.size()) - 1));
    const ConnectionId id = one->first;
    Connection& connection = one->second;
    connection.left_alone = !sessions_.WantsBytes(id);
    if (connection.left_alone) return;
    if (connection.to_come.empty()) {
      if (connection.closes && !IsAwaited(connection)) CloseNow(id);
      return;
    }
    const std::string piece = connection.to_come.substr(0, static_cast<std::size_t>(Between(1, 200)));
    connection.to_come.erase(0, piece.size());
    connection.hello -= std::min(connection.hello, piece.size());
    sessions_.Received(id, piece, now_);
  }

  /// Closes the agent's connection for stdout, if there is one, once it has delivered its bytes.
  void CloseOut(const Agent& agent) {
    const auto out = connections_.find(agent.out.value_or(0));
    if (out != connections_.end()) out->second.closes = true;
  }

  /// Whether this is the connection for stderr of an agent whose connection for stdout has not identified
  /// itself yet. If so, it must not close.
  bool IsAwaited(const Connection& connection) const {
    if (!connection.index || !connection.is_err) return false;
    const auto out = connections_.find(agents_[*connection.index].out.value_or(0));
    return out != connections_.end() && out->second.hello > 0;
  }

  void CloseNow(ConnectionId id) {
    const Connection gone = connections_[id];
    connections_.erase(id);
    if (gone.is_err) CloseOut(agents_[*gone.index]);
    sessions_.Closed(id);
  }

  void Perform() {
    for (auto actions = sessions_.TakeActions(); !actions.empty(); actions = sessions_.TakeActions()) {
      for (const AgentAction& action : actions) std::visit([this](const auto& one) { Do(one); }, action);
    }
  }

  // --- commands to agents ---------------------------------------------------------------------------------

  void Do(const AgentSend& send) {
    const auto found = connections_.find(send.connection);
    if (found == connections_.end()) return;
    ASSERT_TRUE(found->second.is_err) << "bytes for a connection that is not read";
    const std::size_t index = *found->second.index;
    Agent& agent = agents_[index];
    if (agent.err != send.connection) return;
    if (send.bytes.starts_with("go ")) return Launch(index, std::stoi(send.bytes.substr(3)));
    ASSERT_EQ(send.bytes, "done\n");
    CloseOut(agent);
  }

  /// Simulates a process that writes some whole and partial lines and ends.
  void Launch(std::size_t index, int attempt) {
    Agent& agent = agents_[index];
    ++agent.processes;
    agent.ended = false;
    agent.out = Open(Hello(index, "out"));
    Connection& out = connections_[*agent.out];
    Connection& err = connections_[*agent.err];
    out.index = index;
    err.to_come += MessageBytes(index, fmt::format("start {} 17 host", attempt));
    for (int i = Between(0, 20); i > 0; --i) {
      const bool to_out = Chance(50);
      std::string text = fmt::format("{} of {}", i, attempt) +
                         std::string(static_cast<std::size_t>(Chance(3) ? 90'000 : Between(0, 30)), '.');
      if (Chance(80)) text += '\n';
      (to_out ? out : err).to_come += text;
      agent.wrote[to_out ? 0 : 1] += text;
    }
    out.closes = Chance(80);  // otherwise a descendant of the process holds it open
    err.to_come += MessageBytes(index, fmt::format("ended {}", attempt));
    const int code = Chance(50) ? 0 : 3;
    err.to_come += MessageBytes(index, fmt::format("exit {} {}", attempt, code));
    agent.ended = true;
    if (code == 0) err.closes = true;
  }

  void Do(const AgentHeartbeat& heartbeat) {
    const auto found = connections_.find(heartbeat.connection);
    EXPECT_TRUE(found == connections_.end() || found->second.is_err);
  }
  void Do(const AgentEndSending& end) {
    const auto found = connections_.find(end.connection);
    if (found == connections_.end()) return;
    ASSERT_TRUE(found->second.is_err);
    found->second.closes = true;
    CloseOut(agents_[*found->second.index]);
  }
  void Do(const AgentRead& read) {
    const auto found = connections_.find(read.connection);
    if (found != connections_.end()) found->second.left_alone = false;
  }
  void Do(const AgentClose& close) {
    const auto found = connections_.find(close.connection);
    if (found == connections_.end()) return;
    EXPECT_TRUE(!found->second.index || found->second.hello > 0) << "an agent is dropped" << Describe();
    const auto index = found->second.index;
    connections_.erase(found);
    if (!index) return;
    // The connection was an agent's, but the sessions took it for a stranger's.
    Agent& agent = agents_[*index];
    if (agent.err == close.connection) return Begin(*index);
    agent.breaks = true;
    if (connections_.contains(*agent.err)) connections_[*agent.err].closes = true;
  }

  // --- events from agents ---------------------------------------------------------------------------------

  void Do(const AgentEvent& event) {
    std::visit([this](const auto& one) { On(one); }, event);
  }
  void On(const AgentArrived& event) {
    Agent& agent = agents_[event.index];
    ASSERT_FALSE(agent.is_here) << Describe();
    agent.is_here = true;
    if (!agent.told_to_end) sessions_.Launch(event.index, agent.processes, 1, "10.0.0.1");
  }
  void On(const AgentOutput& event) {
    EXPECT_FALSE(paused_ && !agents_[event.index].breaks && !agents_[event.index].ended)
        << "nobody takes output now";
    agents_[event.index].came[event.stream == Stream::kOut ? 0 : 1] += event.bytes;
  }
  void On(const AgentSaid& event) {
    Agent& agent = agents_[event.index];
    ASSERT_TRUE(agent.is_here) << Describe();
    if (event.message.kind != "exit") return;
    if (!agent.breaks && !agent.told_to_end) ExpectWhole(event.index);
    if (event.message.text.ends_with(" 3") && agent.processes < 3 && !agent.told_to_end) {
      return sessions_.Launch(event.index, agent.processes, 1, "10.0.0.1");
    }
    if (agent.err && connections_.contains(*agent.err)) connections_[*agent.err].closes = true;
  }
  void On(const AgentLeft& event) {
    Agent& agent = agents_[event.index];
    ASSERT_TRUE(agent.is_here) << "it left twice" << Describe();
    agent.is_here = false;
    agent.over = true;
  }
  void On(const AgentKeyless&) { FAIL(); }

  /// Checks that all output of the process was passed on, byte for byte, unless a connection broke or the
  /// process was told to end.
  void ExpectWhole(std::size_t index) {
    const Agent& agent = agents_[index];
    for (const int stream : {0, 1}) {
      if (agent.breaks || agent.told_to_end) {
        // An incomplete message at the end is passed on as text.
        const std::string came = agent.came[stream].substr(0, agent.came[stream].find('\036'));
        EXPECT_LE(came.size(), agent.wrote[stream].size()) << Describe();
      } else {
        EXPECT_EQ(agent.came[stream], agent.wrote[stream])
            << "of stream " << stream << " of " << index << Describe();
      }
    }
  }

  std::string Describe() const {
    std::string text;
    for (const Agent& agent : agents_) {
      text +=
          fmt::format("\n  agent {}: here {}, processes {}, breaks {}, told to end {}, over {}", agent.call,
                      agent.is_here, agent.processes, agent.breaks, agent.told_to_end, agent.over);
    }
    for (const auto& [id, one] : connections_) {
      text += fmt::format("\n  connection {}: of {}, {} bytes to come, closes {}", id,
                          one.index ? std::to_string(*one.index) : "nobody", one.to_come.size(), one.closes);
    }
    return text;
  }

  std::mt19937 random_;
  TimePoint now_{std::chrono::hours(1)};
  AgentSessions sessions_;
  std::vector<Agent> agents_;
  std::map<ConnectionId, Connection> connections_;
  ConnectionId last_connection_ = 0;
  bool paused_ = false;
};

TEST(AgentSessionsSimulation, AgentsLeaveOnceAndNothingTheyWroteIsLost) {
  const unsigned runs = RandomCases(1000);
  const unsigned first = std::random_device{}();
  for (unsigned i = 0; i < runs && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("seed {}", first + i));
    AgentWorld(first + i).Run();
  }
}

/// Takes the pending actions. Returns the events among them as text.
std::vector<std::string> EventsOf(AgentSessions& sessions) {
  std::vector<std::string> told;
  for (const AgentAction& action : sessions.TakeActions()) {
    const auto* const event = std::get_if<AgentEvent>(&action);
    if (event == nullptr) continue;
    if (const auto* const one = std::get_if<AgentArrived>(event))
      told.push_back(fmt::format("{} arrived", one->index));
    if (const auto* const one = std::get_if<AgentLeft>(event))
      told.push_back(fmt::format("{} left", one->index));
    if (const auto* const one = std::get_if<AgentOutput>(event)) told.push_back(one->bytes);
    if (const auto* const one = std::get_if<AgentSaid>(event))
      told.push_back(fmt::format("{} {}", one->index, one->message.kind));
  }
  return told;
}

TEST(AgentSessions, OneThatAnotherHasReplacedSaysNothingOfTheProcessAnyMore) {
  const TimePoint now{std::chrono::hours(1)};
  AgentSessions sessions(kSessionMark, kKey, 10, now);
  sessions.Opened(1, "10.0.0.1", now);
  sessions.Received(1, fmt::format("{} 7 err first host\n", kKey), now);
  EXPECT_THAT(EventsOf(sessions), ElementsAre("7 arrived"));
  sessions.Opened(2, "10.0.0.2", now);
  sessions.Received(2, fmt::format("{} 7 err second host\n", kKey), now);
  EXPECT_THAT(EventsOf(sessions), ElementsAre("7 left", "7 arrived"));
  sessions.Received(1, "its last line\n" + MessageBytes(7, "exit 0 9"), now);
  sessions.Closed(1);
  EXPECT_THAT(EventsOf(sessions), ElementsAre("its last line\n"));
  sessions.Received(2, MessageBytes(7, "exit 0 0"), now);
  EXPECT_THAT(EventsOf(sessions), ElementsAre("7 exit"));
}

}  // namespace
}  // namespace warren::submit
