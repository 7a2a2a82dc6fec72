// The connections over which workers tell how they are doing (wire/report.h). Nothing of the job hangs on
// them: they may come and go at any time, and whichever dialect its workers speak. Where peers are admitted
// that prove nothing, those that know the job's token come first. Pure.
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

/// Each worker needs one. Beyond so many times the number of workers the oldest goes, of those that have not
/// proved the job's token first.
inline constexpr std::size_t kReportConnectionsPerWorker = 4;
/// Bytes of reports that have not come whole, of all connections together. Beyond, those go that have not
/// proved the job's token and keep such bytes, the oldest first, then who sends more: a report is about a
/// kilobyte.
inline constexpr std::size_t kMaxUnreadReportBytes = std::size_t{8} << 20;

class ReportConnections {
 public:
  explicit ReportConnections(ConnectionTable& connections) : connections_(connections) {}

  /// The connection is one of these; nothing is expected of it, and it may be silent for ever.
  void Open(ConnectionId connection, int num_workers);
  bool Has(ConnectionId connection) const { return sources_.contains(connection); }
  /// What follows the magic. Questions for the time are answered with `now`. What a peer that has proved
  /// nothing says of a task is passed over as long as one that knows the job's token reports for it.
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  void Closed(ConnectionId connection);
  /// Ends one whose peer is no good.
  void Drop(ConnectionId connection, const std::string& reason, Severity severity = Severity::kWarning);
  /// Ends the one that is worth the least: the oldest, of those that have not proved the job's token first.
  /// False where there is none.
  bool DropOldest(const std::string& reason, Severity severity = Severity::kWarning);

 private:
  struct Source {
    wire::ReportStream stream;
    std::optional<std::string> task_id = {};  ///< of its last report
  };
  bool MayReport(ConnectionId connection, Source& source, const std::string& task_id);
  void LimitUnreadBytes(ConnectionId connection);
  void Forget(ConnectionId connection);
  void ForgetTask(const Source& source);

  ConnectionTable& connections_;
  std::map<ConnectionId, Source> sources_;  ///< oldest first
  /// By how many connections that know the job's token.
  std::unordered_map<std::string, std::size_t> proved_tasks_;
  std::size_t unread_bytes_ = 0;
};

}  // namespace warren::tracker
