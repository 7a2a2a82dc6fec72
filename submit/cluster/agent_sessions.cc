#include "submit/cluster/agent_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <sstream>

#include "submit/cluster/script.h"
#include "wire/job_token.h"
#include "wire/printable.h"

namespace warren::submit {
namespace {

constexpr std::size_t kMaxHelloBytes = 1024;
/// Soft limit on the output held back for each connection: an unfinished line or, during a pause, all output.
constexpr std::size_t kMaxHeldBytes = std::size_t{64} << 10;
/// If no output arrives for this long after the end of a process, its output is considered complete.
constexpr std::chrono::milliseconds kDrainPatience{500};
/// An unfinished line is passed on if nothing more arrives on its connection for this long.
constexpr std::chrono::milliseconds kLinePatience{20};
/// Time limit for a connection to identify itself.
constexpr std::chrono::seconds kHelloPatience{20};

}  // namespace

struct AgentSessions::Agent {
  Agent(std::size_t number, std::string name, const std::string& job_mark)
      : index(number), call(std::move(name)), reader(job_mark) {}

  std::size_t index;
  std::string call;  ///< a name that distinguishes agents with the same index
  AgentMessageReader reader;
  std::optional<ConnectionId> err;
  std::optional<ConnectionId> out;  ///< standard output of the newest attempt
  bool has_arrived = false;
  bool replaced = false;  ///< whether another agent with the same index has connected
  bool told_to_end = false;
  bool draining = false;              ///< whether its process has ended, but output may still arrive
  int num_outs = 0;                   ///< number of `out` connections so far
  int num_starts = 0;                 ///< number of attempts reported as started; each has one `out`
  std::deque<AgentMessage> messages;  ///< messages not passed on yet
};

AgentSessions::AgentSessions(const std::string& job_mark, std::string key, std::size_t max_pending,
                             TimePoint now)
    : job_mark_(job_mark), key_(std::move(key)), max_pending_(max_pending), heartbeat_(now + kBeatInterval) {}

// --- connections -----------------------------------------------------------------------------------------

void AgentSessions::Opened(ConnectionId connection, const std::string& address, TimePoint now) {
  connections_[connection].address = address;
  pending_.insert(connection);
  SetTimer({connection, Timer::kHello}, now + kHelloPatience);
  if (pending_.size() > max_pending_) DropOldestPending();
}

void AgentSessions::DropOldestPending() {
  if (!pending_.empty()) Drop(*pending_.begin());
}

void AgentSessions::Drop(ConnectionId connection) {
  ClearTimer({connection, Timer::kHello});
  pending_.erase(connection);
  connections_.erase(connection);
  actions_.emplace_back(AgentClose{connection});
}

bool AgentSessions::Has(const std::optional<ConnectionId>& connection) const {
  return connection && connections_.contains(*connection);
}

bool AgentSessions::OutIsOver(const Agent& agent) const {
  return agent.num_outs >= agent.num_starts && !Has(agent.out);
}

bool AgentSessions::WantsBytes(ConnectionId connection) const {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return false;
  const Connection& one = found->second;
  // While output is paused, about kMaxHeldBytes per connection are still read, since the end of a process is
  // noticed only after its output.
  return !paused_ || !one.agent || one.agent->told_to_end || one.line.size() < kMaxHeldBytes;
}

void AgentSessions::Received(ConnectionId connection, std::string_view bytes, TimePoint now) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  if (found->second.agent) return OnBytes(connection, bytes, now);
  found->second.hello += bytes;
  ReadHello(connection, now);
}

/// Parses the first line of a connection, which output may follow: "KEY INDEX out|err CALL HOST", or "MARK
/// INDEX keyless CALL HOST" from an agent that could not read the key.
void AgentSessions::ReadHello(ConnectionId connection, TimePoint now) {
  Connection& one = connections_.at(connection);
  const std::size_t end = one.hello.find('\n');
  if (end == std::string::npos && one.hello.size() < kMaxHelloBytes) return;
  if (end >= kMaxHelloBytes) return Drop(connection);
  std::istringstream words(one.hello.substr(0, end));
  const std::string rest = one.hello.substr(end + 1);
  std::string key, stream, call, host;
  std::size_t index = 0;
  words >> key >> index >> stream >> call >> host;
  host = wire::Printable(host);
  if (words && key == job_mark_ && stream == "keyless") {
    Tell(AgentKeyless{index, host});
    return Drop(connection);
  }
  if (!words || !wire::Same(key, key_) || (stream != "out" && stream != "err")) return Drop(connection);
  ClearTimer({connection, Timer::kHello});
  pending_.erase(connection);
  one.hello.clear();
  std::shared_ptr<Agent>& agent = agents_[index];
  if (agent && agent->call != call) {
    // This is another agent for the same process. The earlier one is gone, and its connections will close.
    agent->replaced = true;
    if (agent->has_arrived) Tell(AgentLeft{index});
    agent = nullptr;
  }
  if (!agent) agent = std::make_shared<Agent>(index, call, job_mark_);
  one.agent = agent;
  one.stream = stream == "out" ? Stream::kOut : Stream::kErr;
  if (one.stream == Stream::kOut) {
    ++agent->num_outs;
    agent->out = connection;
  } else {
    agent->err = connection;
    agent->has_arrived = true;
    Tell(AgentArrived{index, host, one.address});
  }
  if (!rest.empty()) OnBytes(connection, rest, now);
}

void AgentSessions::Closed(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  const std::shared_ptr<Agent> agent = found->second.agent;
  if (!agent) return Drop(connection);
  HandRestOn(connection);
  ClearTimer({connection, Timer::kDrain});
  connections_.erase(connection);
  actions_.emplace_back(AgentClose{connection});
  const bool err_is_over = !Has(agent->err);
  if (err_is_over) agent->num_starts = 0;  // do not wait for `out` connections that were never opened
  HandMessagesOn(*agent);
  if (!OutIsOver(*agent) || !err_is_over) return;
  agent->reader.Finish([&](std::string_view text) {
    Tell(AgentOutput{agent->index, Stream::kErr, std::string(text)});
  });
  if (agent->replaced) return;
  agents_.erase(agent->index);
  if (agent->has_arrived) Tell(AgentLeft{agent->index});
}

// --- what agents send ------------------------------------------------------------------------------------

void AgentSessions::OnBytes(ConnectionId connection, std::string_view bytes, TimePoint now) {
  const Connection& one = connections_.at(connection);
  Agent& agent = *one.agent;
  if (one.stream == Stream::kOut) {
    HandOn(connection, bytes, now);
    return Drain(agent, now);
  }
  agent.reader.Append(
      bytes, [&](std::string_view text) { HandOn(connection, text, now); },
      [&](const AgentMessage& message) {
        if (message.kind == "start") ++agent.num_starts;
        if (message.kind == "start" || message.kind == "ended") agent.draining = message.kind == "ended";
        agent.messages.push_back(message);
      });
  HandMessagesOn(agent);
  Drain(agent, now);
}

/// Passes on whole lines if possible, since the network may split them anywhere. An unfinished line is held
/// back for kLinePatience unless it exceeds kMaxHeldBytes. While output is paused, all of it is held back.
void AgentSessions::HandOn(ConnectionId connection, std::string_view bytes, TimePoint now) {
  Connection& one = connections_.at(connection);
  // While output is paused, the output of a process that was told to end is dropped, so that its end is still
  // noticed.
  if (paused_ && one.agent->told_to_end) return;
  one.line += bytes;
  if (paused_) return;
  const std::size_t newline = one.line.rfind('\n');
  const std::size_t whole = newline == std::string::npos ? 0 : newline + 1;
  if (whole > 0) {
    Tell(AgentOutput{one.agent->index, one.stream, one.line.substr(0, whole)});
    one.line.erase(0, whole);
  }
  if (one.line.size() > kMaxHeldBytes) HandRestOn(connection);
  if (!one.line.empty()) SetTimer({connection, Timer::kLine}, now + kLinePatience);
}

void AgentSessions::HandRestOn(ConnectionId connection) {
  Connection& one = connections_.at(connection);
  ClearTimer({connection, Timer::kLine});
  if (one.line.empty()) return;
  Tell(AgentOutput{one.agent->index, one.stream, std::exchange(one.line, {})});
}

/// Passes on the messages, but reports the end of a process only when all of its output has arrived.
void AgentSessions::HandMessagesOn(Agent& agent) {
  while (!agent.messages.empty()) {
    const bool is_end = agent.messages.front().kind == "exit" || agent.messages.front().kind == "stopped";
    if (is_end && !OutIsOver(agent)) return;
    AgentMessage message = std::move(agent.messages.front());
    agent.messages.pop_front();
    if (is_end && Has(agent.err)) HandRestOn(*agent.err);
    // Messages of a replaced agent are dropped.
    if (!agent.replaced) Tell(AgentSaid{agent.index, std::move(message)});
  }
}

/// If the agent's process has ended but output may still arrive, restarts the timer that ends the wait for
/// more output.
void AgentSessions::Drain(const Agent& agent, TimePoint now) {
  if (agent.draining && Has(agent.err)) SetTimer({*agent.err, Timer::kDrain}, now + kDrainPatience);
}

void AgentSessions::OnDrained(Agent& agent, TimePoint now) {
  if (!agent.draining) return;
  if (paused_ && !agent.told_to_end) return Drain(agent, now);
  agent.draining = false;
  actions_.emplace_back(AgentSend{*agent.err, "done\n"});
}

// --- commands for agents ---------------------------------------------------------------------------------

void AgentSessions::Launch(std::size_t index, int attempt, std::uint16_t port, const std::string& master) {
  Send(index, fmt::format("go {} {} {}\n", attempt, port, master));
}

bool AgentSessions::AskForStacks(std::size_t index) {
  return Send(index, "stacks\n");
}

/// Sends the agent a command. Returns false if the agent is not connected.
bool AgentSessions::Send(std::size_t index, std::string command) {
  const auto found = agents_.find(index);
  if (found == agents_.end() || !Has(found->second->err)) return false;
  actions_.emplace_back(AgentSend{*found->second->err, std::move(command)});
  return true;
}

void AgentSessions::End(std::size_t index) {
  const auto found = agents_.find(index);
  if (found == agents_.end()) return;
  Agent& agent = *found->second;
  agent.told_to_end = true;
  if (Has(agent.err)) actions_.emplace_back(AgentEndSending{*agent.err});
  // The last output of the process must be read even while output is paused.
  for (const auto& connection : {agent.err, agent.out}) {
    if (Has(connection)) actions_.emplace_back(AgentRead{*connection});
  }
}

void AgentSessions::ResumeOutput(TimePoint now) {
  paused_ = false;
  for (const auto& [id, connection] : connections_) {
    if (!connection.agent) continue;
    HandOn(id, {}, now);
    actions_.emplace_back(AgentRead{id});
  }
}

// --- time ------------------------------------------------------------------------------------------------

void AgentSessions::SetTimer(const TimerKey& key, TimePoint when) {
  ClearTimer(key);
  timers_.emplace(key, when);
  deadlines_.emplace(when, key);
}

void AgentSessions::ClearTimer(const TimerKey& key) {
  const auto found = timers_.find(key);
  if (found == timers_.end()) return;
  deadlines_.erase({found->second, key});
  timers_.erase(found);
}

TimePoint AgentSessions::NextDeadline() const {
  return deadlines_.empty() ? heartbeat_ : std::min(heartbeat_, deadlines_.begin()->first);
}

void AgentSessions::Tick(TimePoint now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const TimerKey key = deadlines_.begin()->second;
    ClearTimer(key);
    OnTimer(key, now);
  }
  if (now < heartbeat_) return;
  heartbeat_ = now + kBeatInterval;
  for (const auto& [index, agent] : agents_) {
    if (Has(agent->err)) actions_.emplace_back(AgentHeartbeat{*agent->err});
  }
}

void AgentSessions::OnTimer(const TimerKey& key, TimePoint now) {
  const auto& [connection, timer] = key;
  switch (timer) {
    case Timer::kHello:
      return Drop(connection);
    case Timer::kLine:
      if (!paused_) HandRestOn(connection);
      return;
    case Timer::kDrain:
      return OnDrained(*connections_.at(connection).agent, now);
  }
}

}  // namespace warren::submit
