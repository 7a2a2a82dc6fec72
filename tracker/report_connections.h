// The connections over which workers tell how they are doing (wire/report.h). Nothing of the job hangs on
// them: they may come and go at any time, and whichever dialect its workers speak. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "tracker/connection_table.h"
#include "wire/report.h"

namespace warren::tracker {

/// Each worker needs one. Beyond so many times the number of workers the oldest goes.
inline constexpr std::size_t kReportConnectionsPerWorker = 4;
/// Bytes of reports that have not come whole, of all connections together. Who sends what goes beyond is
/// dropped: a report is about a kilobyte.
inline constexpr std::size_t kMaxUnreadReportBytes = std::size_t{8} << 20;

class ReportConnections {
 public:
  explicit ReportConnections(ConnectionTable& connections) : connections_(connections) {}

  /// The connection is one of these; nothing is expected of it, and it may be silent for ever.
  void Open(ConnectionId connection, int num_workers);
  bool Has(ConnectionId connection) const { return sources_.contains(connection); }
  /// What follows the magic. Questions for the time are answered with `now`.
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  void Closed(ConnectionId connection);
  /// Ends one whose peer is no good.
  void Drop(ConnectionId connection, const std::string& reason);

 private:
  struct Source {
    wire::ReportStream stream;
    bool is_named = false;  ///< in the table, after its task
  };
  void Forget(ConnectionId connection);

  ConnectionTable& connections_;
  std::map<ConnectionId, Source> sources_;  ///< oldest first
  std::size_t unread_bytes_ = 0;
};

}  // namespace warren::tracker
