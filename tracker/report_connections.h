// The connections over which workers report their state (wire/report.h). The job does not depend on them:
// workers of either dialect may open and close them at any time. If unauthenticated peers are admitted, peers
// that know the job's token take precedence. Does no I/O.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tracker/connection_table.h"
#include "wire/report.h"

namespace warren::tracker {

/// The maximum number of report connections, per worker of the job; a worker needs one or two. Beyond it, the
/// oldest connection is dropped, starting with those whose peers have not proved the job's token.
inline constexpr std::size_t kReportConnectionsPerWorker = 4;
/// Limit on the buffered bytes of incomplete reports, over all connections; a report takes about a kilobyte.
/// The connection whose bytes exceed the limit is dropped. If its peer has proved the token, the oldest
/// unauthenticated connection with an incomplete report is dropped first, which may suffice.
inline constexpr std::size_t kMaxUnreadReportBytes = std::size_t{8} << 20;

class ReportConnections {
 public:
  explicit ReportConnections(ConnectionTable& connections) : connections_(connections) {}

  /// Adds a report connection. The peer may stay silent for any time.
  void Open(ConnectionId connection, int num_workers);
  bool Has(ConnectionId connection) const { return sources_.contains(connection); }
  /// Handles bytes after the magic number. Clock requests are answered with `now`. Reports of a peer that has
  /// not proved the job's token are ignored while a peer that has proved it reports for the same task.
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  void Closed(ConnectionId connection);
  /// Ends a connection whose peer misbehaves.
  void Drop(ConnectionId connection, const std::string& reason, Severity severity = Severity::kWarning);
  /// Ends the least valuable connection: the oldest, starting with those whose peers have not proved the
  /// job's token. Returns false if there are no connections.
  bool DropOldest(const std::string& reason, Severity severity = Severity::kWarning);

 private:
  struct Source {
    wire::ReportStream stream;
    std::optional<std::string> task_id = {};  ///< the task of its last report
  };
  bool MayReport(ConnectionId connection, Source& source, const std::string& task_id);
  void LimitUnreadBytes(ConnectionId connection);
  void Forget(ConnectionId connection);
  void ForgetTask(const Source& source);

  ConnectionTable& connections_;
  std::map<ConnectionId, Source> sources_;  ///< oldest first
  /// For each task, the number of its connections whose peers know the job's token.
  std::unordered_map<std::string, std::size_t> proved_tasks_;
  std::size_t unread_bytes_ = 0;
};

}  // namespace warren::tracker
