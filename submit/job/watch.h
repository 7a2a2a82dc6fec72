// Publishes the results of a job's monitor (monitor/job_monitor.h). Findings go to the log. The state goes to
// the status line on the terminal, to clients of the metrics and the page, to the history of jobs, and to the
// collector of traces.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "submit/job/supervisor.h"
#include "submit/monitor/history.h"
#include "submit/monitor/job_monitor.h"
#include "submit/monitor/output_history.h"
#include "submit/monitor/timeline_file.h"
#include "submit/monitor/usage_history.h"
#include "submit/monitor/web_server.h"
#include "submit/options/options.h"
#include "submit/output/console.h"
#include "submit/trace/tracing.h"
#include "wire/job_token.h"

namespace warren::submit {

/// The functions of the job that the watch calls.
struct WatchCallbacks {
  /// Returns text about the workers that have joined and those that have not; empty if unknown.
  std::function<std::string()> missing;
  /// See Cluster::Dump.
  std::function<void(std::size_t index, std::function<void(std::string text)> done)> dump;
  /// Returns whether the process is running.
  std::function<bool(std::size_t index)> runs;
  /// Cancels the job.
  std::function<void()> cancel;
};

class JobWatch {
 public:
  /// `console`, `options` and `tracing` (null: no traces) must outlive this object. `began`: the start time
  /// of the job. `joins`: whether workers are expected to join a tracker that dmlc-submit runs. `token`: the
  /// job's token. Throws std::runtime_error if metrics or the page cannot be served or the timeline cannot be
  /// written.
  JobWatch(boost::asio::io_context& io, Console& console, const Options& options,
           std::chrono::system_clock::time_point began, const std::vector<PlannedProcess>& plan, bool joins,
           const wire::JobToken& token, Tracing* tracing, WatchCallbacks callbacks);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  /// Call when the job begins. Writes its record, logs the addresses of its metrics, page and traces, and
  /// starts to show its progress. Returns the error in writing the record, or an empty string.
  std::string Begin();

  /// The monitor, to which the caller must report the job's events.
  JobMonitor& monitor() { return monitor_; }
  void OnReport(const wire::WorkerReport& report);
  /// Handles a line that a process has written, or part of a long line.
  void OnOutput(std::size_t index, Stream stream, std::string_view piece);
  /// Handles text that a worker has printed through the tracker.
  void OnTrackerPrint(int rank, std::string_view text);
  /// Records everything that the cluster now keeps for the job.
  void ClusterKeeps(const std::vector<KeptJob>& jobs);
  /// Shows on the terminal how many workers have joined, until StopShowingJoining.
  void ShowJoining(int joined, int expected);
  void StopShowingJoining();
  /// Adds a log message about the job to the timeline and the page, unless it is a debug message.
  void OnLog(const LogLine& line);

  /// Call when the job is over. Calls `done` once the page's readers have the last state and the remaining
  /// traces have been sent, or these steps have timed out. `culprit`: the process that made the job fail.
  void Finish(const JobResult& result, const std::string& story, std::optional<std::size_t> culprit,
              std::function<void()> done);
  /// Collects and shows the stacks of a process; does nothing if they are already being collected.
  void Dump(std::size_t index);

 private:
  void WaitToLook();
  void Tick();
  void ShowLine();
  void Report(const std::vector<Finding>& findings);
  void Say(const std::string& text) const;
  void DumpAll();
  void ShowDump(std::size_t index, const std::string& text);
  void SayInJson(const JobSnapshot& job);
  std::string KeepPage(const JobSnapshot& job) const;
  void KeepEvaluations(const JobSnapshot& job);
  PageSources SourcesOfPage(const wire::JobToken& token);

  Console& console_;
  const Options& options_;
  Tracing* const tracing_;
  const WatchCallbacks callbacks_;
  JobMonitor monitor_;
  const std::chrono::system_clock::time_point began_;
  std::optional<History> history_;  ///< set once the job has begun
  OutputHistory output_;
  UsageHistory usage_;
  double kept_at_seconds_ = 0;            ///< time of the last KeepEvaluations, since the job began
  double kept_evaluation_ = 0;            ///< time of the latest kept evaluation, since the job began
  std::set<std::size_t> dumped_;          ///< processes whose stacks are being collected
  std::vector<std::string> stack_files_;  ///< paths, one per process; empty without --log-dir
  std::optional<TimelineFile> timeline_;  ///< set with --timeline
  std::unique_ptr<WebServer> web_;        ///< set with --dashboard or --metrics-port
  boost::asio::steady_timer timer_;
  TimePoint last_look_;
  bool runs_ = false;  ///< whether the job has begun and is not over
  bool joining_ = false;
  std::optional<std::int64_t> said_round_;
};

}  // namespace warren::submit
