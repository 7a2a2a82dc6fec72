// One job as the tracker sees it. Finds out who may take part (wire/authentication.h, admission.h) and which
// dialect each connection speaks, and hands it to that dialect's job: classic_job.h for rabit and XGBoost up
// to 2.0, collective_job.h for XGBoost 2.1 and later; or, as one that brings reports, to
// report_connections.h. A state machine over values: connections are numbers,
// time is an argument, what it wants done comes out as actions. No sockets, threads or clocks.
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
#include "tracker/note.h"
#include "tracker/report_connections.h"
#include "wire/bytes.h"

namespace warren::tracker {

/// How long a peer may take from connecting to the end of its hello. A worker needs microseconds, or seconds
/// on a machine that starts hundreds at once; a peer that needs longer is not one, or is stuck.
inline constexpr std::chrono::seconds kHelloTimeout{30};
/// What a pending connection gets where there is room for no others.
inline constexpr std::chrono::seconds kPendingGrace{2};
/// Pending connections, those that have not said hello yet: twice the workers, and this many. Beyond, the
/// oldest goes.
inline constexpr std::size_t kMaxPendingConnections = 1024;

/// What pending connections may have sent, together. Workers need some hundred bytes
/// for that, and one that fails a stack trace. Beyond, those with most of it go.
inline constexpr std::size_t kMaxPendingBytes = std::size_t{16} << 20;

class Job {
 public:
  /// Throws std::invalid_argument for a number of workers that no job has.
  Job(const JobOptions& options, TimePoint now);

  /// Takes the job over from one that wrote these notes, before anybody has come. Throws
  /// std::invalid_argument when no job can have written them.
  void TakeOver(const std::vector<Note>& notes, TimePoint now);

  void Opened(ConnectionId connection, std::string host, std::uint16_t port, TimePoint now);
  /// The peer has sent this many bytes that are no message: its handshake of TLS.
  void ReceivedHandshake(ConnectionId connection, std::size_t bytes);
  /// The peer has proved the job's token in another way than by wire/authentication.h: the connection is
  /// encrypted with it.
  void Authenticated(ConnectionId connection);
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  /// A connection that the job wanted made (Connect) stands.
  void Connected(ConnectionId connection);
  /// The peer closed, or the connection broke or could not be made; `why` is for the log.
  void Closed(ConnectionId connection, std::string_view why, TimePoint now);
  /// When the process can take no more connections: drops one that brings reports, for nothing of the job
  /// hangs on them, else the oldest pending one, if it has had kPendingGrace. False when there is none.
  bool MakeRoom(TimePoint now);
  /// Drops peers that took too long and ends the job when its time is up.
  void Tick(TimePoint now);
  /// When Tick has something to do next, if ever.
  std::optional<TimePoint> NextDeadline() const;
  /// For a launcher, which sees the processes: one has failed, `how` for people ("was killed by signal 9").
  /// The workers of XGBoost 2.1 and later cannot go on without it, and are told so.
  void TaskFailed(const std::string& task_id, const std::string& how, TimePoint now);
  /// How long workers are missing is counted from now: until now they could not come, as in a queue.
  void WaitAnew(TimePoint now);

  /// What is to be done, in order. Empties the list.
  std::vector<Action> TakeActions();
  /// What is still to be sent before the server ends.
  std::vector<Send> FinalMessages() const { return collective_->FinalMessages(); }

  /// True when the workers are XGBoost's of 2.1 or later, who cannot go on without one of them.
  bool is_collective() const { return collective_->engaged(); }
  int world_size() const { return Current().world_size(); }
  bool finished() const { return classic_->finished() || collective_->finished(); }
  /// True while all workers are linked, as far as is known.
  bool linked() const { return Current().linked(); }
  /// Tasks that have a rank.
  std::optional<int> RankOfTask(const std::string& task_id) const { return Current().RankOfTask(task_id); }
  /// True when the task's rank has said shutdown and does not wait for others.
  bool TaskHasShutDown(const std::string& task_id) const { return Current().TaskHasShutDown(task_id); }
  /// How many workers of XGBoost 2.1 or later had shut down before this task did, if it is one that did.
  std::optional<int> GoneAfter(const std::string& task_id) const { return collective_->GoneAfter(task_id); }
  /// True when the task has been through the making of its links.
  bool TaskHasLinked(const std::string& task_id) const { return Current().TaskHasLinked(task_id); }
  /// True when every worker has been given a rank.
  bool all_assigned() const { return Current().all_assigned(); }
  /// The workers that came and those that did not, for a person to read.
  std::string DescribeMissing() const { return Current().DescribeMissing(); }

 private:
  /// A connection that a peer has made: its dialect is not known yet, or whose job it is.
  struct Inbound {
    enum class Step { kMagic, kNonce, kProof, kVouch, kDialect };
    Step step = Step::kMagic;
    TimePoint since;
    std::size_t bytes = 0;  ///< received
    wire::Nonce worker_nonce{};
    wire::Nonce tracker_nonce{};
    wire::Reader head;
    DialectJob* job = nullptr;
    /// Received since then, until it is known whether it may take part: of a peer that has proved the token
    /// as long as peers that have not are admitted, and of one that has to show a ticket.
    std::string received;
    /// Why it may not take part, unless its hello shows a ticket.
    std::optional<std::string> refusal;
  };

  const DialectJob& Current() const;
  bool admits_unauthenticated() const { return admission_.keys() && !admission_.closed(); }
  void RequireAuthentication(TimePoint now);
  void HandleVouch(ConnectionId connection, const wire::Vouch& vouch, TimePoint now);
  std::optional<std::string> WithTicketRedeemed(ConnectionId connection, const Inbound& inbound);
  std::optional<std::string> RefusalOfUnproved(ConnectionId connection) const;
  void Dispatch(ConnectionId connection, std::string_view bytes, TimePoint now);
  bool ReadHead(ConnectionId connection, Inbound& inbound, std::string_view& bytes, TimePoint now);
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
  std::optional<ClassicJob> classic_;  ///< both always there
  std::optional<CollectiveJob> collective_;
  std::unordered_map<ConnectionId, Inbound> inbound_;
  std::size_t pending_bytes_ = 0;  ///< at least what pending ones have sent; counted anew at the limit
};

}  // namespace warren::tracker
