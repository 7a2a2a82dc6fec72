// One job as the tracker sees it. Finds out who may take part (wire/introduction.h, admission.h) and which
// dialect each connection speaks, and hands it to that dialect's job: classic_job.h for rabit and XGBoost up
// to 2.0, collective_job.h for XGBoost 2.1 and later. A state machine over values: connections are numbers,
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
#include "tracker/desk.h"
#include "tracker/dialect_job.h"
#include "tracker/note.h"
#include "wire/bytes.h"

namespace warren::tracker {

/// How long a peer may take from connecting to the end of its hello. A worker needs microseconds, or seconds
/// on a machine that starts hundreds at once; a peer that needs longer is not one, or is stuck.
inline constexpr std::chrono::seconds kHelloTimeout{30};
/// What it gets where there is room for no others.
inline constexpr std::chrono::seconds kGrace{2};
/// Connections that have not said hello yet: twice the workers, and this many strangers. Beyond, the oldest
/// goes.
inline constexpr std::size_t kMaxStrangers = 1024;

/// What connections that have not said who they are may have sent, together. Workers need some hundred bytes
/// for that, and one that fails a stack trace. Beyond, those with most of it go.
inline constexpr std::size_t kMaxStrangerBytes = std::size_t{16} << 20;

class Job {
 public:
  /// Throws std::invalid_argument for a number of workers that no job has.
  Job(const JobOptions& options, TimePoint now);

  /// Takes the job over from one that wrote these notes, before anybody has come. Throws
  /// std::invalid_argument when no job can have written them.
  void TakeOver(const std::vector<Note>& notes, TimePoint now);

  void Opened(ConnectionId connection, std::string host, std::uint16_t port, TimePoint now);
  /// The peer has sent this many bytes that are no message: its handshake of TLS.
  void Heard(ConnectionId connection, std::size_t bytes);
  /// The peer has proved the job's token in another way than by an introduction: the connection is encrypted
  /// with it.
  void Proved(ConnectionId connection);
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  /// A connection that the job wanted made (Call) stands.
  void Reached(ConnectionId connection);
  /// The peer closed, or the connection broke or could not be made; `why` is for the log.
  void Closed(ConnectionId connection, std::string_view why, TimePoint now);
  /// Makes room when the process can take no more connections: drops the oldest one that has not said hello,
  /// if it has had kGrace for that. False when there is none.
  bool DropSilentStranger(TimePoint now);
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
  std::vector<Send> LastWords() const { return collective_->LastWords(); }

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
  /// Who came and who did not, for a person to read.
  std::string DescribeMissing() const { return Current().DescribeMissing(); }

 private:
  /// Somebody whose dialect is not known yet, or whose job it is.
  struct Caller {
    enum class Step { kMagic, kNonce, kProof, kDialect };
    Step step = Step::kMagic;
    TimePoint since;
    std::size_t bytes = 0;  ///< received
    wire::Nonce worker_nonce{};
    wire::Nonce tracker_nonce{};
    wire::Reader head;
    DialectJob* job = nullptr;
    std::string said;  ///< since then, by one that has proved the token, as long as the job is open to others
  };

  const DialectJob& Current() const;
  bool is_open_to_others() const { return admission_.keys() && !admission_.closed(); }
  void CloseToOthers(TimePoint now);
  void HandOver(ConnectionId connection, std::string_view bytes, TimePoint now);
  bool ReadHead(ConnectionId connection, Caller& caller, std::string_view& bytes);
  bool ReadIntroduction(ConnectionId connection, Caller& caller);
  static void RequireSame(const wire::Digest& shown, const wire::Digest& expected);
  static std::string_view Expected(const Caller& caller);
  const DialectJob& OtherThan(const DialectJob& job) const;
  std::string RefusalOf(const DialectJob& job) const;
  void DropOldestStranger();
  void CountStrangerBytes(ConnectionId connection, std::size_t bytes);
  void LimitStrangerBytes();
  void DropStrangersOf(const DialectJob& job);
  void Drop(ConnectionId connection, const std::string& reason);

  Desk desk_;
  JobOptions options_;
  Admission admission_;
  std::optional<ClassicJob> classic_;  ///< both always there
  std::optional<CollectiveJob> collective_;
  std::unordered_map<ConnectionId, Caller> callers_;
  std::size_t stranger_bytes_ = 0;  ///< at least what strangers have sent; counted anew at the limit
};

}  // namespace warren::tracker
