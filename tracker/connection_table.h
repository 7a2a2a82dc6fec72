// The connections of a job, by number: the peer of each, which connections are pending (no hello yet), and
// how long each may stay silent. Also the list of the job's actions that have not been carried out yet. Does
// no I/O.
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
  /// `takes_notes`: JobOptions::takes_notes.
  explicit ConnectionTable(bool takes_notes) : takes_notes_(takes_notes) {}

  /// Adds a connection that a peer has made. It is pending until SetIdentified, for which it has until
  /// `deadline`.
  void Open(ConnectionId connection, std::string host, std::uint16_t port, TimePoint deadline);
  /// Requests a connection from the tracker to a peer. Returns its number, which is unique.
  ConnectionId Connect(const std::string& host, std::uint16_t port);
  bool Has(ConnectionId connection) const { return connections_.contains(connection); }

  const std::string& host(ConnectionId connection) const { return connections_.at(connection).host; }
  /// Sets the description shown after the peer's address: "task 3, rank 2".
  void SetName(ConnectionId connection, std::string name);
  /// The peer's address and description, for the log: "10.0.0.1:40123, task 3, rank 2".
  std::string Name(ConnectionId connection) const;

  /// Records that the peer has proved the job's token or shown a valid ticket.
  void SetAuthenticated(ConnectionId connection) { connections_.at(connection).authenticated = true; }
  bool authenticated(ConnectionId connection) const { return connections_.at(connection).authenticated; }
  /// Whether messages from this peer are accepted for a worker that joined from `host`: the peer is
  /// authenticated or is at that host.
  bool MaySpeakFor(ConnectionId connection, const std::string& host) const;

  /// Records that the peer has identified itself: the connection is no longer pending and has no deadline.
  void SetIdentified(ConnectionId connection);
  std::size_t num_pending() const { return pending_.size(); }
  bool IsPending(ConnectionId connection) const { return pending_.contains(connection); }
  std::optional<ConnectionId> OldestPending() const;

  void SetDeadline(ConnectionId connection, std::optional<TimePoint> deadline);
  std::optional<TimePoint> NextDeadline() const;
  /// The connection whose deadline passed first, if any deadline has passed.
  std::optional<ConnectionId> FirstLate(TimePoint now) const;

  void Send(ConnectionId connection, std::string bytes);
  /// Removes the connection from the table, and closes it once all bytes to send have been written.
  void Close(ConnectionId connection);
  void Log(Severity severity, std::string text);
  /// Logs that a connection is dropped, which the caller does.
  void LogDrop(ConnectionId connection, std::string_view reason, Severity severity = Severity::kWarning);
  /// Adds the note if the job takes notes.
  void Write(Note note);
  /// Whether Write adds notes from now on. Returns whether it did so before.
  bool SetTakesNotes(bool takes_notes) { return std::exchange(takes_notes_, takes_notes); }
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
  bool takes_notes_;
  ConnectionId next_outbound_ = ConnectionId{1} << 63;  ///< the server numbers inbound connections from 1
};

}  // namespace warren::tracker
