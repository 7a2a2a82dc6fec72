// What a worker tells of itself while it runs: reports, about one a second, over a connection of their own to
// the tracker. Bytes in, messages out: no sockets, no clock. docs/reference/tracker-protocol.md shows the
// same in bytes.
//
//   worker                              tracker
//   magic (of reports)          ->
//   Report (asks_clock)         ->
//                               <-    ClockAnswer
//   Report, Report, ..., closes ->
//
// Behind the magic every message is a string (its length, then its bytes) that holds one JSON object. A
// reader takes no notice of members that it does not know. All texts of a report that was read may stand on a
// terminal: what a terminal would obey is written as \xNN.
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

/// First four bytes of a connection for reports, in place of kMagic of wire/dialect.h.
inline constexpr std::int32_t kReportMagic = 0x50525257;  // "WRRP"

/// Limits on what a peer may send.
inline constexpr std::size_t kMaxReportBytes = std::size_t{512} << 10;
/// Calls that took long, in one report: the longest ones.
inline constexpr std::size_t kMaxReportedWaits = 1024;
/// Beyond, metrics and kinds of collectives are left out.
inline constexpr std::size_t kMaxReportedMetrics = 64;
inline constexpr std::size_t kMaxReportedTraffic = 64;
/// Of a timeline. So many events of names as they are make no report too long.
inline constexpr std::size_t kMaxTracedEvents = 128;
inline constexpr std::size_t kMaxTracedNumbers = 4;
/// Longer texts are cut by who writes them.
inline constexpr std::size_t kMaxReportedNameBytes = 256;
inline constexpr std::size_t kMaxReportedTaskIdBytes = 1024;

/// What has gone through one kind of collective since the worker began: all numbers only grow.
struct ReportedTraffic {
  std::string collective;  ///< "allreduce"
  std::string algorithm;   ///< "ring"; empty: not known here
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  ///< of this rank's own buffers
  double seconds = 0;       ///< in these calls
};

/// A collective call that has ended and took long: a rank that came late took less time in it than the
/// others, who waited. Ranks that are in one communicator count its calls alike.
struct ReportedWait {
  std::uint64_t call = 0;
  double seconds = 0;  ///< in the call
};

/// The call that the worker is in, or the last one that it was in.
struct ReportedCall {
  std::uint64_t number = 0;  ///< of all collective calls of the world's communicator, from 1
  std::string name;          ///< "Allreduce of 4096 floats", for people
  bool inside = false;
  double seconds = 0;  ///< it has been inside, or has not been
};

/// What the program says of itself.
struct ReportedProgress {
  std::int64_t round = 0;
  std::int64_t of = 0;  ///< 0: not known
  /// NaN is one that is no number, or infinite.
  std::vector<std::pair<std::string, double>> metrics;
};

/// A data set that is being read.
struct ReportedReading {
  std::string what;  ///< its name; empty: no more is being read
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t total_bytes = 0;  ///< of this worker's share; 0: not known
  double seconds = 0;             ///< since it began
};

/// Something that took time, for the timeline of the whole job.
struct TracedEvent {
  std::string line;           ///< on which it is shown: "world", "world: gradients"
  std::string name;           ///< "Allreduce"
  std::int64_t begin_ns = 0;  ///< by the tracker's clock (ClockAnswer)
  std::uint64_t length_ns = 0;
  std::vector<std::pair<std::string, std::uint64_t>> numbers;  ///< what is known of it besides
};

struct WorkerReport {
  std::string task_id;  ///< DMLC_TASK_ID
  int rank = -1;        ///< -1: it has none
  std::string host;
  int pid = 0;
  double every = 0;  ///< seconds: another report comes about so long after this one; 0: not known
  std::optional<ReportedCall> call;
  std::vector<ReportedTraffic> traffic;
  std::vector<ReportedWait> waits;  ///< that ended since the report before
  std::uint64_t waits_dropped = 0;  ///< how many of these are left out: there were too many
  std::optional<ReportedProgress> progress;
  std::optional<ReportedReading> reading;
  std::vector<TracedEvent> trace;  ///< since the report before
  /// A question for the time, and nothing else: the tracker answers at once.
  bool asks_clock = false;
};

/// What the tracker's clock shows. By a few of these a worker finds out how far its own is off.
struct ClockAnswer {
  std::int64_t now_ns = 0;
};

/// The whole message, its length in front. It is never too long for a reader: names are cut, and what is
/// beyond the limits is left out.
std::string Encode(const WorkerReport& report);

std::string Encode(const ClockAnswer& answer);
/// From the tracker, without the length in front. Throws ProtocolError.
ClockAnswer DecodeClockAnswer(std::string_view bytes);

/// Decodes what one worker sends, however it is cut into pieces. Whoever makes it has read the magic.
class ReportStream {
 public:
  void Append(std::string_view bytes) { reader_.Append(bytes); }
  /// The next whole report, or `std::nullopt` until more bytes arrive. Throws ProtocolError when the bytes
  /// cannot be a worker's; the stream is then of no further use.
  std::optional<WorkerReport> Next();
  /// Bytes that have come and are no whole report yet.
  std::size_t num_buffered() const { return reader_.available(); }

 private:
  Reader reader_;
};

}  // namespace warren::wire
