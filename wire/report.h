// Reports that a worker sends about itself at regular intervals (WARREN_REPORT_SECONDS; longer in large
// jobs), over a separate connection to the tracker. Converts between bytes and messages, without sockets or a
// clock. docs/reference/tracker-protocol.md describes the bytes.
//
//   worker                              tracker
//   magic (of reports)          ->
//   Report (asks_clock)         ->
//                               <-    ClockAnswer
//   Report, Report, ..., closes ->
//
// After the magic, every message is a string (its length, then its bytes). A report is a JSON object, whose
// unknown members are ignored; a ClockAnswer is a decimal number. All strings of a decoded report, except the
// names in TracedEvent::numbers, are safe for a terminal: newlines and tabs become spaces, and other control
// characters are written as \xNN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/bytes.h"

namespace warren::wire {

/// The first four bytes of a connection for reports, instead of kMagic of wire/dialect.h.
inline constexpr std::int32_t kReportMagic = 0x50525257;  // "WRRP"

/// The maximum length of a report, in bytes.
inline constexpr std::size_t kMaxReportBytes = std::size_t{512} << 10;
/// The maximum number of waits (calls that took long) in one report. A worker with more waits reports the
/// longest ones.
inline constexpr std::size_t kMaxReportedWaits = 1024;
/// The maximum numbers of metrics and of kinds of collectives in one report. The encoder omits the others.
inline constexpr std::size_t kMaxReportedMetrics = 64;
inline constexpr std::size_t kMaxReportedTraffic = 64;
/// The maximum number of timeline events in one report. If their names have usual lengths, they fit into
/// kMaxReportBytes.
inline constexpr std::size_t kMaxTracedEvents = 128;
inline constexpr std::size_t kMaxTracedNumbers = 4;
/// The maximum lengths of strings, in bytes. The encoder truncates longer ones.
inline constexpr std::size_t kMaxReportedNameBytes = 256;
inline constexpr std::size_t kMaxReportedTaskIdBytes = 1024;

/// The totals of one kind of collective since the worker began; they never decrease.
struct ReportedTraffic {
  std::string collective;  ///< its name: "allreduce"
  std::string algorithm;   ///< its algorithm: "ring"; empty if not known
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  ///< bytes in this rank's own buffers
  double seconds = 0;       ///< time spent in these calls
};

/// A long collective call that has ended. A late rank spends less time in the call than the others, which
/// wait for it. All ranks of a communicator number its calls in the same way.
struct ReportedWait {
  std::uint64_t call = 0;
  double seconds = 0;  ///< time spent in the call
};

/// The call that the worker is in, or its last one.
struct ReportedCall {
  std::uint64_t number = 0;  ///< counts all collective calls of the world communicator, from 1
  std::string name;          ///< for display: "Allreduce of 4096 floats"
  bool inside = false;
  double seconds = 0;  ///< time since the call began or, if it has ended, since its end
};

/// The progress reported by the program.
struct ReportedProgress {
  std::int64_t round = 0;
  std::int64_t of = 0;  ///< total rounds; 0 if not known
  /// Names and values. Infinite values arrive as NaN.
  std::vector<std::pair<std::string, double>> metrics;
};

/// The progress of reading a data set.
struct ReportedReading {
  std::string what;  ///< the data set's name; empty if nothing is being read any longer
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t total_bytes = 0;  ///< size of this worker's share; 0 if not known
  double seconds = 0;             ///< time since reading began
};

/// An event with a duration, for the timeline of the whole job.
struct TracedEvent {
  std::string line;           ///< the line of the timeline: "world", "world: gradients"
  std::string name;           ///< for display: "Allreduce"
  std::int64_t begin_ns = 0;  ///< on the tracker's clock (ClockAnswer)
  std::uint64_t length_ns = 0;
  std::vector<std::pair<std::string, std::uint64_t>> numbers;  ///< names and values to show in addition
};

struct WorkerReport {
  std::string task_id;  ///< DMLC_TASK_ID
  int rank = -1;        ///< -1 if the process has none
  std::string host;
  int pid = 0;
  /// The interval between reports, in seconds, approximately; 0 if not known.
  double every = 0;
  std::optional<ReportedCall> call;
  std::vector<ReportedTraffic> traffic;
  std::vector<ReportedWait> waits;  ///< waits that ended since the previous report
  std::uint64_t waits_dropped = 0;  ///< number of waits left out because of kMaxReportedWaits
  std::optional<ReportedProgress> progress;
  std::optional<ReportedReading> reading;
  std::vector<TracedEvent> trace;  ///< events since the previous report
  /// Whether the report is only a request for the tracker's time. The tracker answers it immediately.
  bool asks_clock = false;
};

/// The time on the tracker's clock. From a few answers, a worker computes the difference between its own
/// clock and the tracker's.
struct ClockAnswer {
  std::int64_t now_ns = 0;
};

/// Encodes the message, preceded by its length. To keep it short enough for the reader, names are truncated
/// and entries beyond the limits are omitted.
std::string Encode(const WorkerReport& report);

std::string Encode(const ClockAnswer& answer);
/// Decodes the tracker's answer, without its length. Throws ProtocolError if it is not a number.
ClockAnswer DecodeClockAnswer(std::string_view bytes);

/// Decodes the reports of one worker from its bytes after the magic, which may arrive in pieces of any size.
class ReportStream {
 public:
  void Append(std::string_view bytes) { reader_.Append(bytes); }
  /// Returns the next whole report, or `std::nullopt` until more bytes arrive. Throws ProtocolError if no
  /// worker would send these bytes; the stream is then unusable.
  std::optional<WorkerReport> Next();
  /// The number of received bytes that do not form a whole report yet.
  std::size_t num_buffered() const { return reader_.available(); }

 private:
  Reader reader_;
};

}  // namespace warren::wire
