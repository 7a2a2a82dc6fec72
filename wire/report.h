// What a worker tells of itself while it runs: reports, about one a second, over a connection of their own to
// the tracker. Bytes in, messages out: no sockets, no clock. docs/tracker-protocol.md shows the same in
// bytes.
//
//   worker                              tracker
//   magic (of reports)          ->
//   Report, Report, ..., closes ->
//
// Behind the magic every message is a string (its length, then its bytes) that holds one JSON object. A
// reader takes no notice of members that it does not know.
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

/// Limits on what a peer may send.
inline constexpr std::size_t kMaxReportBytes = std::size_t{64} << 10;
/// Calls that took long, in one report: the longest ones.
inline constexpr std::size_t kMaxReportedWaits = 64;

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

struct WorkerReport {
  std::string task_id;  ///< DMLC_TASK_ID
  int rank = -1;        ///< -1: it has none
  std::string host;
  int pid = 0;
  std::optional<ReportedCall> call;
  std::vector<ReportedTraffic> traffic;
  std::vector<ReportedWait> waits;  ///< that ended since the report before
  std::optional<ReportedProgress> progress;
  std::optional<ReportedReading> reading;
};

/// The whole message, its length in front.
std::string Encode(const WorkerReport& report);

/// Decodes what one worker sends, however it is cut into pieces. Whoever makes it has read the magic.
class ReportStream {
 public:
  void Append(std::string_view bytes) { reader_.Append(bytes); }
  /// The next whole report, or `std::nullopt` until more bytes arrive. Throws ProtocolError when the bytes
  /// cannot be a worker's; the stream is then of no further use.
  std::optional<WorkerReport> Next();

 private:
  Reader reader_;
};

}  // namespace warren::wire
