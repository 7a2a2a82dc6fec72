// Tells the tracker how this process is doing, by a thread of its own, when WARREN_REPORT_SECONDS says how
// often: dmlc-submit sets it. A report is never worth a job: who cannot be told is tried again later, and
// nobody waits, but for Finalize and the end of the process, a moment, for the last one.
//
// In a forked process there is none: it is another's task that it would speak for.
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

/// At most for so long the last report is waited for.
inline constexpr std::chrono::milliseconds kLastReportPatience{200};
/// And so long, where events of a timeline have to be sent first.
inline constexpr std::chrono::seconds kLastEventsPatience{5};
inline constexpr std::size_t kMostUnsentEvents = std::size_t{1} << 16;
/// The most that progress is told at once: ten times a second.
inline constexpr std::chrono::milliseconds kLeastPause{100};

/// How often a worker of so many reports: the tracker gets 256 reports in each of `every` at most.
std::chrono::milliseconds Interval(std::chrono::milliseconds every, int world_size);

/// Thread safe.
class Reporter {
 public:
  using Clock = std::chrono::steady_clock;

  /// This process's; null where nobody wants reports, or there is nobody to be told.
  static Reporter* OfThisProcess();
  /// False in a process that was forked since: nobody else may use this there, whose locks may be held for
  /// ever.
  bool IsOfThisProcess() const { return num_forks_ == NumForks(); }

  CallStatistics& statistics() { return statistics_; }
  const Settings& settings() const { return settings_; }

  /// The world's communicator stands. False: this process has one already, whose calls are told. `owner`:
  /// whatever identifies it.
  bool Attach(const void* owner, int rank, int world_size);
  /// It is to be left: the last counts go out at once.
  void Detach(const void* owner);
  void Tell(wire::ReportedProgress progress);
  void Tell(wire::ReportedReading reading);
  /// Something for the timeline of the job, by this process's steady clock. Much at once is sent at once;
  /// beyond kMostUnsentEvents it is dropped, which the timeline says.
  void Trace(wire::TracedEvent event);
  /// Until all that was told so far has been sent; not for long, and not at all while the tracker cannot be
  /// reached.
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
  std::unique_ptr<TrackerConnection> connection_;  ///< the thread's
  std::int64_t clock_offset_ns_ = 0;  ///< of the tracker's clock, which is so much later; the thread's

  std::mutex mutex_;
  std::condition_variable due_;      ///< for the thread
  std::condition_variable changed_;  ///< for those that wait
  bool has_thread_ = false;
  bool has_said_so_ = false;        ///< the missing thread was reported
  bool ends_with_process_ = false;  ///< End is called
  const void* owner_ = nullptr;
  int rank_ = -1;
  int world_size_;
  std::optional<wire::ReportedProgress> progress_;
  std::optional<wire::ReportedReading> reading_;
  std::deque<wire::TracedEvent> trace_;  ///< unsent
  std::uint64_t dropped_ = 0;            ///< of its events
  std::uint64_t wanted_ = 0;             ///< how often something was told
  std::uint64_t sent_ = 0;               ///< of which the tracker knows so much
  bool is_last_ = false;                 ///< what is wanted does not wait for kLeastPause
  bool is_sending_ = false;
  bool is_over_ = false;  ///< the process ends
  CloseOnForkDescriptor
      line_;  ///< the connection's once more, to end it from another thread; none before it stands
  Clock::time_point last_{};
  std::chrono::milliseconds backoff_{0};  ///< after a failure; 0: none
};

}  // namespace warren::reporting
