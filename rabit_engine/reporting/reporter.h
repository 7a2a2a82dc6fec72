// Reports the state of this process to the tracker from a background thread. WARREN_REPORT_SECONDS, which
// dmlc-submit sets, enables reports and sets their interval. Reports do not delay a job's calls: if the
// tracker cannot be reached, the thread tries again later. Only Finalize and the end of the process wait, for
// a limited time, for the last report.
//
// A process forked from one with a reporter does not report, because its reports would appear to come from
// its parent's task.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/base/settings.h"
#include "rabit_engine/reporting/call_statistics.h"
#include "wire/report.h"

namespace warren {
class TrackerConnection;
}

namespace warren::reporting {

/// The longest wait for the last report.
inline constexpr std::chrono::milliseconds kLastReportPatience{200};
/// The longest further wait if timeline events are still unsent and the tracker is connected.
inline constexpr std::chrono::seconds kLastEventsPatience{5};
inline constexpr std::size_t kMostUnsentEvents = std::size_t{1} << 16;
/// The shortest time between two reports, unless the timeline fills a report or the second one is the last.
inline constexpr std::chrono::milliseconds kLeastPause{100};

/// Returns the time between two regular reports of a worker: `every`, or longer in large jobs, so that all
/// workers together send at most 256 of them per `every`.
std::chrono::milliseconds Interval(std::chrono::milliseconds every, int world_size);

/// Thread-safe.
class Reporter {
 public:
  using Clock = std::chrono::steady_clock;

  /// Returns the reporter of this process; null if reports are disabled, there is no tracker, this process is
  /// not a worker, was forked from a process that has a reporter, or has an invalid setting.
  static Reporter* OfThisProcess();
  /// Returns false in a process that was forked after construction. Such a process may call only Detach,
  /// Trace and AwaitSent, which then do nothing: locks may be held forever.
  bool IsOfThisProcess() const { return num_forks_ == NumForks(); }

  CallStatistics& statistics() { return statistics_; }
  const Settings& settings() const { return settings_; }

  /// Called once the world communicator is set up. Returns false if the reporter already serves another
  /// communicator. `owner` is any address that identifies the communicator.
  bool Attach(const void* owner, int rank, int world_size);
  /// Sets the rank in reports while no communicator is attached, as over MPI.
  void SetRank(int rank, int world_size);
  /// Called before the communicator is left: the last counts are sent immediately. Does nothing if `owner` is
  /// not attached.
  void Detach(const void* owner);
  void Tell(wire::ReportedProgress progress);
  void Tell(wire::ReportedReading reading);
  /// Adds an event to the timeline of the job, timed by this process's steady clock. A full batch is sent
  /// immediately. While kMostUnsentEvents events are unsent, further ones are dropped, and the timeline
  /// states their number.
  void Trace(wire::TracedEvent event);
  /// Waits for a limited time until everything reported so far has been sent. Returns immediately if the
  /// tracker cannot be reached.
  void AwaitSent();

 private:
  explicit Reporter(Settings settings);
  ~Reporter();

  using Lock = std::unique_lock<std::mutex>;
  void Want(const Lock& lock);
  void StartThread();
  void Serve();
  Clock::time_point Due() const;
  bool Reach();
  void Connected(int descriptor);
  void MeasureClock(TrackerConnection& connection);
  void TakeTrace(wire::WorkerReport& report);
  bool Send(const std::string& bytes);
  void End();

  const Settings settings_;
  const std::string host_;
  const std::uint64_t num_forks_ = NumForks();
  CallStatistics statistics_;
  std::unique_ptr<TrackerConnection> connection_;  ///< used only by the thread
  /// The tracker's clock minus this process's steady clock. Used only by the thread.
  std::int64_t clock_offset_ns_ = 0;

  std::mutex mutex_;
  std::condition_variable due_;      ///< wakes the thread
  std::condition_variable changed_;  ///< wakes AwaitSent and End
  bool has_thread_ = false;
  bool has_said_so_ = false;        ///< whether a failure to start the thread has been reported
  bool ends_with_process_ = false;  ///< whether End is registered with atexit
  const void* owner_ = nullptr;
  int rank_ = -1;
  int world_size_;
  std::optional<wire::ReportedProgress> progress_;
  std::optional<wire::ReportedReading> reading_;
  std::deque<wire::TracedEvent> trace_;  ///< unsent events
  std::uint64_t dropped_ = 0;            ///< number of dropped events
  std::uint64_t wanted_ = 0;             ///< number of the latest request for a report
  std::uint64_t sent_ = 0;               ///< number of the latest request whose report has been sent
  bool is_last_ = false;                 ///< whether the next report is sent without waiting for kLeastPause
  bool is_sending_ = false;
  bool is_over_ = false;  ///< whether the process is ending
  /// A duplicate of the connection's descriptor, for End; empty until connected.
  CloseOnForkDescriptor line_;
  Clock::time_point last_{};
  std::chrono::milliseconds backoff_{0};  ///< the pause after a failure; otherwise 0
};

}  // namespace warren::reporting
