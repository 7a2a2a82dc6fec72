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
  if (sources_.size() > most) {
    DropOldest(fmt::format(
        "more than {} connections send reports, and this one is the oldest that may be dropped", most));
  }
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
      if (!MayReport(connection, found->second, report->task_id)) continue;
      connections_.Add(WorkerReported{std::make_shared<const wire::WorkerReport>(*std::move(report))});
    }
  } catch (const wire::ProtocolError& error) {
    unread_bytes_ += stream.num_buffered();
    return Drop(connection, error.what());
  }
  unread_bytes_ += stream.num_buffered();
  if (unread_bytes_ > kMaxUnreadReportBytes) LimitUnreadBytes(connection);
}

/// Records the task of a report. Returns whether the report is used: if the peer has not proved the job's
/// token, only while no peer that has proved it reports for the same task.
bool ReportConnections::MayReport(ConnectionId connection, Source& source, const std::string& task_id) {
  const bool is_proved = connections_.authenticated(connection);
  if (source.task_id != task_id) {
    if (!source.task_id) connections_.SetName(connection, fmt::format("reports of task {}", task_id));
    if (is_proved) {
      ForgetTask(source);
      ++proved_tasks_[task_id];
    }
    source.task_id = task_id;
  }
  return is_proved || !proved_tasks_.contains(task_id);
}

/// Called when kMaxUnreadReportBytes is exceeded. `connection`: the connection that has received the last
/// bytes.
void ReportConnections::LimitUnreadBytes(ConnectionId connection) {
  const std::string reason =
      fmt::format("more than {} MiB of incomplete reports, the limit for all connections together",
                  kMaxUnreadReportBytes >> 20);
  if (connections_.authenticated(connection)) {
    const auto found = std::find_if(sources_.begin(), sources_.end(), [this](const auto& source) {
      return source.second.stream.num_buffered() > 0 && !connections_.authenticated(source.first);
    });
    if (found != sources_.end()) Drop(found->first, reason);
  }
  if (unread_bytes_ > kMaxUnreadReportBytes) Drop(connection, reason);
}

void ReportConnections::Closed(ConnectionId connection) {
  Forget(connection);
  connections_.Close(connection);
}

void ReportConnections::Drop(ConnectionId connection, const std::string& reason, Severity severity) {
  connections_.LogDrop(connection, reason, severity);
  Closed(connection);
}

bool ReportConnections::DropOldest(const std::string& reason, Severity severity) {
  if (sources_.empty()) return false;
  const auto found = std::find_if(sources_.begin(), sources_.end(), [this](const auto& source) {
    return !connections_.authenticated(source.first);
  });
  Drop(found == sources_.end() ? sources_.begin()->first : found->first, reason, severity);
  return true;
}

void ReportConnections::Forget(ConnectionId connection) {
  const auto found = sources_.find(connection);
  if (found == sources_.end()) return;
  unread_bytes_ -= found->second.stream.num_buffered();
  if (connections_.authenticated(connection)) ForgetTask(found->second);
  sources_.erase(found);
}

/// Must be called only for connections whose peers have proved the job's token.
void ReportConnections::ForgetTask(const Source& source) {
  if (!source.task_id) return;
  const auto found = proved_tasks_.find(*source.task_id);
  if (--found->second == 0) proved_tasks_.erase(found);
}

}  // namespace warren::tracker
