// The actions that a job requests and the events that it reports, as plain values. The server (server.cc)
// carries them out.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "tracker/note.h"
#include "wire/report.h"

namespace warren::tracker {

using TimePoint = std::chrono::steady_clock::time_point;
using ConnectionId = std::uint64_t;

struct Send {
  ConnectionId connection;
  std::string bytes;
};
struct Close {
  ConnectionId connection;  ///< closed once all bytes to send have been written
};
/// Connects to a peer; Job::Connected or Job::Closed is called afterwards. Bytes that are sent before then
/// are written once the connection is established.
struct Connect {
  ConnectionId connection;
  std::string host;
  std::uint16_t port;
};
enum class Severity { kDebug, kInfo, kWarning };
struct Report {
  Severity severity;
  std::string text;
};
struct Joined {
  int joined, expected;
};
struct Assigned {
  std::string task_id;
  int rank;
  std::string host;
};
struct Linked {};
/// A new generation of an elastic job has begun: from now on, its members train together.
struct GenerationBegan {
  int number, size;
  /// The time since a member of the previous generation was lost or, without a loss, since the first worker
  /// waited for this generation.
  double seconds;
  std::string text;  ///< "generation 2 begins with 1 worker (task 0), 0.2 s after task 1 (host n1) was lost"
};
/// A worker of an elastic job has reported that the job's work is done (`is_done`), or a worker that had
/// reported this has more to do.
struct WorkDone {
  bool is_done;
};
/// The workers cannot continue together. Those that the tracker could reach were told to stop, and all
/// workers may start again. Not reported for elastic jobs, in which Job handles the loss.
struct Broken {
  std::string task_id;  ///< the first worker that failed
  int rank;
  std::string story;  ///< which worker failed, and how, for people
};
/// A status report from a worker of either dialect, even from a worker that has not joined.
struct WorkerReported {
  std::shared_ptr<const wire::WorkerReport> report;  ///< a pointer, to keep Action small
};
struct Print {
  std::string text;
  int rank;  ///< the worker that printed it, or -1 if unknown
};
struct Finished {
  std::string failure;  ///< why the job failed; empty if it succeeded
};
using Action = std::variant<Send, Close, Connect, Report, Joined, Assigned, Linked, GenerationBegan, WorkDone,
                            Broken, WorkerReported, Print, Note, Finished>;

}  // namespace warren::tracker
