// The connections of a job by their numbers: who is at the other end, which are pending (nobody has said
// hello there yet), how long each may stay silent, and the list of what is to be done for them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracker/action.h"

namespace warren::tracker {

class ConnectionTable {
 public:
  /// A peer has connected: the connection is pending until SetIdentified, and may be so until `deadline`.
  void Open(ConnectionId connection, std::string host, std::uint16_t port, TimePoint deadline);
  /// A connection that the job makes itself, under a number that no other has.
  ConnectionId Connect(const std::string& host, std::uint16_t port);
  bool Has(ConnectionId connection) const { return connections_.contains(connection); }

  const std::string& host(ConnectionId connection) const { return connections_.at(connection).host; }
  /// What is known of it besides its address: "task 3, rank 2".
  void SetName(ConnectionId connection, std::string name);
  /// "10.0.0.1:40123, task 3, rank 2"
  std::string Name(ConnectionId connection) const;

  /// It knows the job's token.
  void SetAuthenticated(ConnectionId connection) { connections_.at(connection).authenticated = true; }
  bool authenticated(ConnectionId connection) const { return connections_.at(connection).authenticated; }
  /// Whether it may speak for a worker that joined from `host`: it knows the token, or is there itself.
  bool MaySpeakFor(ConnectionId connection, const std::string& host) const;

  /// It has said who it is: it is not pending any more, and has no deadline.
  void SetIdentified(ConnectionId connection);
  std::size_t num_pending() const { return pending_.size(); }
  bool IsPending(ConnectionId connection) const { return pending_.contains(connection); }
  std::optional<ConnectionId> OldestPending() const;

  void SetDeadline(ConnectionId connection, std::optional<TimePoint> deadline);
  std::optional<TimePoint> NextDeadline() const;
  /// One whose deadline has passed.
  std::optional<ConnectionId> FirstLate(TimePoint now) const;

  void Send(ConnectionId connection, std::string bytes);
  /// Forgets it, and closes it when what was sent has gone out.
  void Close(ConnectionId connection);
  void Log(Severity severity, std::string text);
  void Add(Action action) { actions_.push_back(std::move(action)); }
  std::vector<Action> TakeActions() { return std::exchange(actions_, {}); }

 private:
  struct Connection {
    std::string host;
    std::uint16_t port = 0;
    std::string name = {};
    std::optional<TimePoint> deadline = {};
    bool authenticated = false;
  };

  std::unordered_map<ConnectionId, Connection> connections_;
  std::set<ConnectionId> pending_;  ///< oldest first
  std::set<std::pair<TimePoint, ConnectionId>> deadlines_;
  std::vector<Action> actions_;
  ConnectionId next_outbound_ = ConnectionId{1} << 63;  ///< the server counts those that come from 1
};

}  // namespace warren::tracker
