// The tracker's state of one job. Determines which peers are admitted (wire/authentication.h, admission.h)
// and which dialect each connection speaks, and passes the connection to the job of that dialect:
// classic_job.h for rabit and XGBoost up to 2.0, collective_job.h for XGBoost 2.1 and later. Report
// connections are passed to report_connections.h, memberships of an elastic job to generations.h. A state
// machine without I/O: connections are numbers, the time is an argument, and results are returned as actions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracker/action.h"
#include "tracker/admission.h"
#include "tracker/classic_job.h"
#include "tracker/collective_job.h"
#include "tracker/connection_table.h"
#include "tracker/dialect_job.h"
#include "tracker/generations.h"
#include "tracker/note.h"
#include "tracker/report_connections.h"
#include "wire/bytes.h"

namespace warren::tracker {

/// Time limit from connecting to the end of the hello. A worker needs microseconds, or seconds on a machine
/// that starts hundreds of workers together; a slower peer is stuck or not a worker.
inline constexpr std::chrono::seconds kHelloTimeout{30};
/// The time for which a pending connection is kept even if the process cannot accept more connections.
inline constexpr std::chrono::seconds kPendingGrace{2};
/// The maximum number of pending connections (whose peers have not sent their hello yet), in addition to two
/// for each worker. Beyond that, the oldest pending connection is dropped.
inline constexpr std::size_t kMaxPendingConnections = 1024;

/// Limit on the bytes received on all pending connections together. A hello takes a few hundred bytes, more
/// if a failing worker sends a stack trace. Beyond the limit, the connections with the most bytes are
/// dropped.
inline constexpr std::size_t kMaxPendingBytes = std::size_t{16} << 20;

class Job {
 public:
  /// Throws std::invalid_argument if the number of workers is out of range.
  Job(const JobOptions& options, TimePoint now);

  /// Takes the job over from the tracker that wrote these notes, before any peer has connected. Throws
  /// std::invalid_argument if no job can have written them.
  void TakeOver(const std::vector<Note>& notes, TimePoint now);

  void Opened(ConnectionId connection, std::string host, std::uint16_t port, TimePoint now);
  /// Called when the peer has sent this many more bytes of a TLS handshake.
  void ReceivedHandshake(ConnectionId connection, std::size_t bytes);
  /// Called when the peer has proved the job's token by TLS instead of wire/authentication.h.
  void Authenticated(ConnectionId connection);
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  /// Called when a connection that the job has requested (Connect) is established.
  void Connected(ConnectionId connection);
  /// Called when the peer has closed the connection, or the connection has failed or could not be made; `why`
  /// is for the log.
  void Closed(ConnectionId connection, std::string_view why, TimePoint now);
  /// Called when the process cannot accept more connections. Drops a report connection, which the job does
  /// not depend on, or else the oldest pending connection if it is older than kPendingGrace. Returns false if
  /// no connection can be dropped.
  bool MakeRoom(TimePoint now);
  /// Drops peers that took too long, and ends the job when its time limit is reached.
  void Tick(TimePoint now);
  /// The time when Tick must be called next; nullopt if it need not be called.
  std::optional<TimePoint> NextDeadline() const;
  /// Called when a launcher notices that the task's process has failed; `how` is readable text ("was killed
  /// by signal 9"). Other workers of XGBoost 2.1 or later cannot continue without this task: they are told to
  /// stop or, in an elastic job, form a new generation.
  void TaskFailed(const std::string& task_id, const std::string& how, TimePoint now);
  /// In an elastic job, sets the number of workers that are running or about to start, according to a
  /// launcher.
  void Expect(int num_workers, TimePoint now);
  /// Restarts the time limit for missing workers. Call it if they could not join until now, e.g. because they
  /// were queued.
  void WaitAnew(TimePoint now);

  /// Returns the actions to carry out, in order, and empties the list.
  std::vector<Action> TakeActions();
  /// Messages that the server sends before it ends.
  std::vector<Send> FinalMessages() const { return collective_->FinalMessages(); }

  /// True if the workers run XGBoost 2.1 or later. Unless the job is elastic, they cannot continue after
  /// losing one of them.
  bool is_collective() const { return collective_->engaged(); }
  int world_size() const { return Current().world_size(); }
  bool finished() const {
    return generations_ ? generations_->finished() : classic_->finished() || collective_->finished();
  }
  /// Whether a worker of an elastic job has reported that the job's work is done.
  bool work_is_done() const { return generations_ && generations_->done(); }
  /// True while all workers are linked, as far as is known.
  bool linked() const { return Current().linked(); }
  /// The task's rank, if it has one.
  std::optional<int> RankOfTask(const std::string& task_id) const { return Current().RankOfTask(task_id); }
  /// True if the task has announced its shutdown and is not waiting for others.
  bool TaskHasShutDown(const std::string& task_id) const { return Current().TaskHasShutDown(task_id); }
  /// The number of workers of XGBoost 2.1 or later that had shut down or been lost before this task;
  /// std::nullopt if this task is still running or unknown.
  std::optional<int> GoneAfter(const std::string& task_id) const { return collective_->GoneAfter(task_id); }
  /// True if the task has been linked at least once (XGBoost 2.1 and later: in the current run).
  bool TaskHasLinked(const std::string& task_id) const { return Current().TaskHasLinked(task_id); }
  /// True if every worker has been given a rank.
  bool all_assigned() const { return Current().all_assigned(); }
  /// Human-readable text about the workers that have joined and those that are missing.
  std::string DescribeMissing() const;

 private:
  /// A connection made by a peer.
  struct Inbound {
    enum class Step { kMagic, kNonce, kProof, kVouch, kDialect };
    Step step = Step::kMagic;
    TimePoint since;
    std::size_t bytes = 0;  ///< number of bytes received while the connection was pending
    wire::Nonce worker_nonce{};
    wire::Nonce tracker_nonce{};
    wire::Reader head;
    DialectJob* job = nullptr;
    /// Bytes received since the dialect became known that may be needed again: from peers with the token
    /// while unauthenticated peers are admitted as well (replayed if the job starts over), and from peers
    /// that must show a ticket (until their hello is complete).
    std::string received;
    /// Why the peer is refused unless its hello has a ticket; nullopt if it is admitted in any case.
    std::optional<std::string> refusal;
  };

  const DialectJob& Current() const;
  /// Whether messages are ignored from now on. An elastic job whose work is done still answers workers that
  /// arrive too late.
  bool is_over() const { return generations_ ? generations_->failed() : finished(); }
  bool admits_unauthenticated() const { return admission_.keys() && !admission_.closed(); }
  void RequireAuthentication(TimePoint now);
  void FollowGenerations(TimePoint now);
  void BeginJobsOf(int generation, TimePoint now);
  void TakeGenerationOver(std::vector<Note>& notes, TimePoint now);
  void HandleVouch(ConnectionId connection, const wire::Vouch& vouch, TimePoint now);
  std::optional<std::string> WithTicketRedeemed(ConnectionId connection, const Inbound& inbound);
  std::optional<std::string> RefusalOfUnproved(ConnectionId connection) const;
  void Dispatch(ConnectionId connection, std::string_view bytes, TimePoint now);
  bool ReadHead(ConnectionId connection, Inbound& inbound, std::string_view& bytes, TimePoint now);
  void RequireUsable(std::int32_t magic) const;
  bool ReadAuthentication(ConnectionId connection, Inbound& inbound);
  static void RequireSame(const wire::Digest& shown, const wire::Digest& expected);
  static std::string_view Expected(const Inbound& inbound);
  const DialectJob& OtherThan(const DialectJob& job) const;
  std::string RefusalOf(const DialectJob& job) const;
  void DropOldestPending();
  void CountPendingBytes(ConnectionId connection, std::size_t bytes);
  void LimitPendingBytes();
  void DropPendingOf(const DialectJob& job);
  void Drop(ConnectionId connection, const std::string& reason);

  ConnectionTable connections_;
  ReportConnections reports_{connections_};
  JobOptions options_;
  Admission admission_;
  std::optional<Generations> generations_;  ///< has a value in an elastic job
  TimePoint now_;                           ///< the time of the last message, lost connection or Tick
  std::optional<ClassicJob> classic_;       ///< classic_ and collective_ always have a value
  std::optional<CollectiveJob> collective_;
  std::unordered_map<ConnectionId, Inbound> inbound_;
  std::size_t pending_bytes_ = 0;  ///< an upper bound, recounted when it exceeds the limit
};

}  // namespace warren::tracker
