// Reports that a worker sends about itself while it runs, about once a second, over a separate connection to
// the tracker. Converts between bytes and messages, without sockets or a clock.
// docs/reference/tracker-protocol.md describes the bytes.
//
//   worker                              tracker
//   magic (of reports)          ->
//   Report (asks_clock)         ->
//                               <-    ClockAnswer
//   Report, Report, ..., closes ->
//
// After the magic every message is a string (its length, then its bytes) that holds one JSON object. Readers
// ignore unknown members. All strings of a decoded report, except the names in TracedEvent::numbers, are safe
// for a terminal: control characters are written as \xNN.
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

/// Limits on what a peer may send.
inline constexpr std::size_t kMaxReportBytes = std::size_t{512} << 10;
/// The maximum number of waits (calls that took long) in one report; the longest ones are kept.
inline constexpr std::size_t kMaxReportedWaits = 1024;
/// The encoder omits metrics and kinds of collectives beyond these numbers.
inline constexpr std::size_t kMaxReportedMetrics = 64;
inline constexpr std::size_t kMaxReportedTraffic = 64;
/// The maximum number of timeline events in one report. With names of usual length, they fit into
/// kMaxReportBytes.
inline constexpr std::size_t kMaxTracedEvents = 128;
inline constexpr std::size_t kMaxTracedNumbers = 4;
/// The encoder truncates longer strings.
inline constexpr std::size_t kMaxReportedNameBytes = 256;
inline constexpr std::size_t kMaxReportedTaskIdBytes = 1024;

/// The totals of one kind of collective since the worker began; they never decrease.
struct ReportedTraffic {
  std::string collective;  ///< "allreduce"
  std::string algorithm;   ///< "ring"; empty if not known
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  ///< bytes in this rank's own buffers
  double seconds = 0;       ///< time spent in these calls
};

/// A long collective call that has ended. A rank that was late spent less time in the call than the others,
/// which waited for it. All ranks of a communicator number its calls in the same way.
struct ReportedWait {
  std::uint64_t call = 0;
  double seconds = 0;  ///< time spent in the call
};

/// The call that the worker is in, or its last one.
struct ReportedCall {
  std::uint64_t number = 0;  ///< counts all collective calls of the world communicator, from 1
  std::string name;          ///< "Allreduce of 4096 floats", for display
  bool inside = false;
  double seconds = 0;  ///< time inside the call, or since it ended
};

/// The progress reported by the program.
struct ReportedProgress {
  std::int64_t round = 0;
  std::int64_t of = 0;  ///< total rounds; 0 if not known
  /// Infinite values arrive as NaN.
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
  std::string name;           ///< "Allreduce"
  std::int64_t begin_ns = 0;  ///< on the tracker's clock (ClockAnswer)
  std::uint64_t length_ns = 0;
  std::vector<std::pair<std::string, std::uint64_t>> numbers;  ///< additional values
};

struct WorkerReport {
  std::string task_id;  ///< DMLC_TASK_ID
  int rank = -1;        ///< -1 if the process has none
  std::string host;
  int pid = 0;
  /// Seconds until the next report, approximately; 0 if not known.
  double every = 0;
  std::optional<ReportedCall> call;
  std::vector<ReportedTraffic> traffic;
  std::vector<ReportedWait> waits;  ///< waits that ended since the previous report
  std::uint64_t waits_dropped = 0;  ///< number of waits left out because there were too many
  std::optional<ReportedProgress> progress;
  std::optional<ReportedReading> reading;
  std::vector<TracedEvent> trace;  ///< events since the previous report
  /// Whether the report only asks for the time, which the tracker answers immediately.
  bool asks_clock = false;
};

/// The time on the tracker's clock. From a few answers a worker computes the difference between its own clock
/// and the tracker's.
struct ClockAnswer {
  std::int64_t now_ns = 0;
};

/// Encodes the whole message, preceded by its length. To keep the message short enough for a reader, names
/// are truncated and entries beyond the limits are omitted.
std::string Encode(const WorkerReport& report);

std::string Encode(const ClockAnswer& answer);
/// Decodes the tracker's answer, not including its length. Throws ProtocolError.
ClockAnswer DecodeClockAnswer(std::string_view bytes);

/// Decodes the bytes that one worker sends after the magic, in pieces of any size.
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
