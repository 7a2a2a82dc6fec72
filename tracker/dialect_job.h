// The common interface of the two dialects' jobs. Job (job.h) passes each connection to the job of its
// dialect.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/action.h"
#include "tracker/admission.h"
#include "tracker/generations.h"
#include "tracker/unranked_workers.h"

namespace warren::tracker {

/// The default of JobOptions::timeout: long enough for a batch queue to start the last worker, but not so
/// long that a job that cannot start wastes a day.
inline constexpr std::chrono::seconds kDefaultTimeout{1800};

struct JobOptions {
  int num_workers = 1;
  SortBy sort_by = SortBy::kHost;
  /// Whether all workers must expect `num_workers`. If false, the first worker may request another number, as
  /// the classic protocol allows. Launchers that determine the number of workers set this to true.
  bool world_size_is_fixed = false;
  /// Time limit for missing workers, counted from the latest of these events: the start of the job, the
  /// return of a worker that must be linked again, the failure of a run, the take-over by another tracker,
  /// and WaitAnew. Zero: none.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  /// Whether the job adds notes to its actions, with which another tracker can take the job over.
  bool takes_notes = false;
  AdmissionOptions admission = {};
  /// Set if workers may join and leave. num_workers is then the number of members of the current generation
  /// (before the first one, the maximum number of workers), and `generation` is the generation's number, or 0
  /// while no generation can be joined.
  std::optional<ElasticOptions> elastic = {};
  int generation = 0;
  /// Returns whether the peer of a connection is a process of the tracker's own user on this machine. Called
  /// for peers that prove nothing, if the answer decides their admission; an empty function means that none
  /// is. Set by the server.
  std::function<bool(ConnectionId)> is_own_user = {};
};

/// Returns the task of a worker that presents itself as `task_id`. In an elastic job, `task_id` must be
/// TASK@GENERATION (wire/membership.h) with the current generation; otherwise throws wire::ProtocolError.
std::string OwnTask(const JobOptions& options, const std::string& task_id);

class DialectJob {
 public:
  DialectJob() = default;
  virtual ~DialectJob() = default;
  DialectJob(const DialectJob&) = delete;
  DialectJob& operator=(const DialectJob&) = delete;

  /// Takes the job over from the tracker that wrote these notes. Throws std::invalid_argument if they are
  /// invalid.
  virtual void TakeOver(const std::vector<Note>& notes, TimePoint now) = 0;

  /// Called when a peer of this dialect has connected.
  virtual void Opened(ConnectionId connection) = 0;
  /// Throws wire::ProtocolError if no worker would send these bytes; the caller then drops the connection.
  virtual void Received(ConnectionId connection, std::string_view bytes, TimePoint now) = 0;
  /// Called when a connection that this job has requested is established.
  virtual void Connected(ConnectionId /*connection*/) {}
  /// Called when the peer has closed the connection, or the connection has failed or was silent for too long;
  /// `why` is for the log.
  virtual void Closed(ConnectionId connection, std::string_view why, TimePoint now) = 0;
  /// Ends a connection whose peer misbehaves.
  virtual void Drop(ConnectionId connection, const std::string& reason) = 0;
  virtual void Tick(TimePoint now) = 0;
  virtual std::optional<TimePoint> NextDeadline() const = 0;
  /// Restarts the time limit for missing workers.
  virtual void WaitAnew(TimePoint now) = 0;
  /// Called when a launcher reports that this task has failed.
  virtual void TaskFailed(const std::string& /*task_id*/, const std::string& /*how*/, TimePoint /*now*/) {}
  /// Messages that the server sends before it ends.
  virtual std::vector<Send> FinalMessages() const { return {}; }

  /// Whether a worker waits for a rank or has been given one.
  virtual bool engaged() const = 0;
  /// True once a worker has made its links (classic dialect), or all workers have been told their successors
  /// (collective dialect).
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
