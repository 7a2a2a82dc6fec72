#include "tracker/desk.h"

#include <fmt/format.h>

namespace warren::tracker {

void Desk::Open(ConnectionId connection, std::string host, std::uint16_t port, TimePoint deadline) {
  visitors_[connection] = {.host = std::move(host), .port = port};
  strangers_.insert(connection);
  SetDeadline(connection, deadline);
}

ConnectionId Desk::Call(const std::string& host, std::uint16_t port) {
  const ConnectionId connection = next_call_++;
  visitors_[connection] = {.host = host, .port = port};
  Add(tracker::Call{connection, host, port});
  return connection;
}

void Desk::SetName(ConnectionId connection, std::string name) {
  visitors_.at(connection).name = std::move(name);
}

std::string Desk::Name(ConnectionId connection) const {
  const Visitor& visitor = visitors_.at(connection);
  return fmt::format("{}:{}{}{}", visitor.host, visitor.port, visitor.name.empty() ? "" : ", ", visitor.name);
}

bool Desk::MaySpeakFor(ConnectionId connection, const std::string& host) const {
  const Visitor& visitor = visitors_.at(connection);
  return visitor.proven || visitor.host == host;
}

void Desk::Greet(ConnectionId connection) {
  strangers_.erase(connection);
  SetDeadline(connection, std::nullopt);
}

std::optional<ConnectionId> Desk::OldestStranger() const {
  if (strangers_.empty()) return std::nullopt;
  return *strangers_.begin();
}

void Desk::SetDeadline(ConnectionId connection, std::optional<TimePoint> deadline) {
  std::optional<TimePoint>& current = visitors_.at(connection).deadline;
  if (current) deadlines_.erase({*current, connection});
  if (deadline) deadlines_.emplace(*deadline, connection);
  current = deadline;
}

std::optional<TimePoint> Desk::NextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

std::optional<ConnectionId> Desk::FirstLate(TimePoint now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return std::nullopt;
  return deadlines_.begin()->second;
}

void Desk::Send(ConnectionId connection, std::string bytes) {
  Add(tracker::Send{connection, std::move(bytes)});
}

void Desk::Close(ConnectionId connection) {
  SetDeadline(connection, std::nullopt);
  strangers_.erase(connection);
  visitors_.erase(connection);
  Add(tracker::Close{connection});
}

void Desk::Log(Severity severity, std::string text) {
  Add(Report{severity, std::move(text)});
}

}  // namespace warren::tracker
