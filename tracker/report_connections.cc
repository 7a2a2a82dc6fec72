#include "tracker/report_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace warren::tracker {

void ReportConnections::Open(ConnectionId connection, int num_workers) {
  connections_.SetIdentified(connection);
  sources_.try_emplace(connection);
  const std::size_t most = kReportConnectionsPerWorker * static_cast<std::size_t>(std::max(num_workers, 1));
  if (sources_.size() > most)
    Drop(sources_.begin()->first,
         fmt::format("more than {} connections bring reports, and this one is the oldest", most));
}

void ReportConnections::Received(ConnectionId connection, std::string_view bytes, TimePoint now) {
  const auto found = sources_.find(connection);
  if (found == sources_.end()) return;
  wire::ReportStream& stream = found->second.stream;
  unread_bytes_ -= stream.num_buffered();
  stream.Append(bytes);
  try {
    while (auto report = stream.Next()) {
      if (report->asks_clock) {
        const auto shown = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch());
        connections_.Send(connection, wire::Encode(wire::ClockAnswer{shown.count()}));
        continue;
      }
      if (!std::exchange(found->second.is_named, true))
        connections_.SetName(connection, fmt::format("reports of task {}", report->task_id));
      connections_.Add(WorkerReported{std::make_shared<const wire::WorkerReport>(*std::move(report))});
    }
  } catch (const wire::ProtocolError& error) {
    unread_bytes_ += stream.num_buffered();
    return Drop(connection, error.what());
  }
  unread_bytes_ += stream.num_buffered();
  if (unread_bytes_ > kMaxUnreadReportBytes) {
    Drop(connection,
         fmt::format("{} MiB of reports that have not come whole are the most that all connections may send",
                     kMaxUnreadReportBytes >> 20));
  }
}

void ReportConnections::Closed(ConnectionId connection) {
  Forget(connection);
  connections_.Close(connection);
}

void ReportConnections::Drop(ConnectionId connection, const std::string& reason) {
  connections_.Log(Severity::kWarning, fmt::format("dropped {}: {}", connections_.Name(connection), reason));
  Closed(connection);
}

void ReportConnections::Forget(ConnectionId connection) {
  const auto found = sources_.find(connection);
  if (found == sources_.end()) return;
  unread_bytes_ -= found->second.stream.num_buffered();
  sources_.erase(found);
}

}  // namespace warren::tracker
