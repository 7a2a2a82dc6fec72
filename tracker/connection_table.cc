#include "tracker/connection_table.h"

#include <fmt/format.h>

namespace warren::tracker {

void ConnectionTable::Open(ConnectionId connection, std::string host, std::uint16_t port,
                           TimePoint deadline) {
  connections_[connection] = {.host = std::move(host), .port = port};
  pending_.insert(connection);
  SetDeadline(connection, deadline);
}

ConnectionId ConnectionTable::Connect(const std::string& host, std::uint16_t port) {
  const ConnectionId connection = next_outbound_++;
  connections_[connection] = {.host = host, .port = port};
  Add(tracker::Connect{connection, host, port});
  return connection;
}

void ConnectionTable::SetName(ConnectionId connection, std::string name) {
  connections_.at(connection).name = std::move(name);
}

std::string ConnectionTable::Name(ConnectionId connection) const {
  const Connection& found = connections_.at(connection);
  return fmt::format("{}:{}{}{}", found.host, found.port, found.name.empty() ? "" : ", ", found.name);
}

bool ConnectionTable::MaySpeakFor(ConnectionId connection, const std::string& host) const {
  const Connection& found = connections_.at(connection);
  return found.authenticated || found.host == host;
}

void ConnectionTable::SetIdentified(ConnectionId connection) {
  pending_.erase(connection);
  SetDeadline(connection, std::nullopt);
}

std::optional<ConnectionId> ConnectionTable::OldestPending() const {
  if (pending_.empty()) return std::nullopt;
  return *pending_.begin();
}

void ConnectionTable::SetDeadline(ConnectionId connection, std::optional<TimePoint> deadline) {
  std::optional<TimePoint>& current = connections_.at(connection).deadline;
  if (current) deadlines_.erase({*current, connection});
  if (deadline) deadlines_.emplace(*deadline, connection);
  current = deadline;
}

std::optional<TimePoint> ConnectionTable::NextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

std::optional<ConnectionId> ConnectionTable::FirstLate(TimePoint now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return std::nullopt;
  return deadlines_.begin()->second;
}

void ConnectionTable::Send(ConnectionId connection, std::string bytes) {
  Add(tracker::Send{connection, std::move(bytes)});
}

void ConnectionTable::Close(ConnectionId connection) {
  SetDeadline(connection, std::nullopt);
  pending_.erase(connection);
  connections_.erase(connection);
  Add(tracker::Close{connection});
}

void ConnectionTable::Log(Severity severity, std::string text) {
  Add(Report{severity, std::move(text)});
}

void ConnectionTable::LogDrop(ConnectionId connection, std::string_view reason, Severity severity) {
  Log(severity, fmt::format("dropped {}: {}", Name(connection), reason));
}

void ConnectionTable::Write(Note note) {
  if (takes_notes_) Add(std::move(note));
}

}  // namespace warren::tracker
