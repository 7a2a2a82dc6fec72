// What the two dialects' jobs have in common for job.h, which hands them their connections.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/action.h"
#include "tracker/admission.h"
#include "tracker/unranked_workers.h"

namespace warren::tracker {

/// Long enough for a batch queue to start the last worker, short enough that nobody waits a day for nothing.
inline constexpr std::chrono::seconds kDefaultTimeout{1800};

struct JobOptions {
  int num_workers = 1;
  SortBy sort_by = SortBy::kHost;
  /// Whether the first worker may ask for another number of workers, as the classic protocol has it. A
  /// launcher that knows how many it starts says no.
  bool world_size_is_fixed = false;
  /// How long the job may stay with workers missing, from its start or from the moment a worker came back to
  /// be linked again; zero: for ever.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  /// Whether notes are wanted, by which another tracker may take the job over.
  bool takes_notes = false;
  AdmissionOptions admission = {};
  /// Whether the peer of a connection is a process of the tracker's own user on this machine; empty: no peer
  /// is. Asked for peers that prove nothing, if that decides. Set by the server.
  std::function<bool(ConnectionId)> is_own_user = {};
};

class DialectJob {
 public:
  DialectJob() = default;
  virtual ~DialectJob() = default;
  DialectJob(const DialectJob&) = delete;
  DialectJob& operator=(const DialectJob&) = delete;

  /// Takes the job over from one that wrote these notes. Throws std::invalid_argument.
  virtual void TakeOver(const std::vector<Note>& notes, TimePoint now) = 0;

  /// A connection that speaks this dialect.
  virtual void Opened(ConnectionId connection) = 0;
  /// Throws wire::ProtocolError when the bytes cannot be a worker's; whoever called drops the connection.
  virtual void Received(ConnectionId connection, std::string_view bytes, TimePoint now) = 0;
  /// A connection that this job made stands.
  virtual void Connected(ConnectionId /*connection*/) {}
  /// The peer closed or the connection broke; `why` is for the log.
  virtual void Closed(ConnectionId connection, std::string_view why, TimePoint now) = 0;
  /// Ends a connection whose peer is no good.
  virtual void Drop(ConnectionId connection, const std::string& reason) = 0;
  virtual void Tick(TimePoint now) = 0;
  virtual std::optional<TimePoint> NextDeadline() const = 0;
  /// How long workers are missing is counted from now.
  virtual void WaitAnew(TimePoint now) = 0;
  /// Somebody who sees the processes says that one has failed.
  virtual void TaskFailed(const std::string& /*task_id*/, const std::string& /*how*/, TimePoint /*now*/) {}
  /// The server ends: what is still to be sent to whom.
  virtual std::vector<Send> FinalMessages() const { return {}; }

  /// True when workers have come that want to be linked.
  virtual bool engaged() const = 0;
  /// True when workers have been told of each other.
  virtual bool begun() const = 0;
  virtual bool finished() const = 0;
  virtual int world_size() const = 0;
  virtual bool linked() const = 0;
  virtual bool all_assigned() const = 0;
  virtual std::optional<int> RankOfTask(const std::string& task_id) const = 0;
  virtual bool TaskHasShutDown(const std::string& task_id) const = 0;
  virtual bool TaskHasLinked(const std::string& task_id) const = 0;
  virtual std::string DescribeMissing() const = 0;
};

}  // namespace warren::tracker
