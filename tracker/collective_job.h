// A job of XGBoost 2.1 or later (the collective dialect): gathers all workers, tells each worker its
// successor in the ring, counts the workers that have shut down and, if one fails, tells all others to stop.
// A state machine without I/O, like classic_job.h.
//
// Workers keep no connection to their tracker. Therefore this tracker connects to each worker's error port,
// through which the worker can be told to stop. The connection stays open, so that a worker's death is
// noticed immediately, however the worker was started. The tracker connects as soon as the worker has joined,
// because the port accepts only one connection, from any peer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracker/connection_table.h"
#include "tracker/dialect_job.h"
#include "wire/collective.h"

namespace warren::tracker {

/// The maximum time between the end of a worker's error connection and the arrival of its shutdown, which
/// uses a different connection.
inline constexpr std::chrono::milliseconds kShutdownGrace{250};

/// When a worker dies, the other workers may notice this and report errors slightly before the tracker
/// notices it. A worker that reports an error is therefore taken for the first to fail only if no other
/// worker is lost within this time.
inline constexpr std::chrono::milliseconds kSilentFailureGrace{50};

/// The time that a worker has to close its connection after its shutdown. Before that, it only has to end the
/// thread that serves its error port, which is quick.
inline constexpr std::chrono::seconds kLeaveTimeout{5};

class CollectiveJob final : public DialectJob {
 public:
  CollectiveJob(ConnectionTable& connections, const JobOptions& options, TimePoint now);

  /// Cannot signal the running workers, because the connections to their error ports closed with the previous
  /// tracker; only counts the workers as they shut down.
  void TakeOver(const std::vector<Note>& notes, TimePoint now) override;

  void Opened(ConnectionId connection) override { peers_[connection]; }
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now) override;
  void Connected(ConnectionId connection) override;
  void Closed(ConnectionId connection, std::string_view why, TimePoint now) override;
  void Drop(ConnectionId connection, const std::string& reason) override;
  /// Closes all error connections before the job is discarded. Tells the members to stop, except in an
  /// elastic job.
  void Abandon();
  void Tick(TimePoint now) override;
  std::optional<TimePoint> NextDeadline() const override;
  void WaitAnew(TimePoint now) override { incomplete_since_ = now; }
  /// Breaks the current run if the task is one of its members and has not shut down.
  void TaskFailed(const std::string& task_id, const std::string& how, TimePoint now) override;
  std::vector<Send> FinalMessages() const override;

  bool engaged() const override { return stage_ != Stage::kGathering || !unranked_.empty(); }
  bool begun() const override { return stage_ != Stage::kGathering; }
  bool finished() const override { return finished_; }
  int world_size() const override { return options_.num_workers; }
  /// True from the time when all workers have been told their successors until the run breaks.
  bool linked() const override { return stage_ == Stage::kRunning; }
  bool all_assigned() const override { return stage_ == Stage::kRunning; }
  std::optional<int> RankOfTask(const std::string& task_id) const override;
  bool TaskHasShutDown(const std::string& task_id) const override;
  bool TaskHasLinked(const std::string& task_id) const override { return RankOfTask(task_id).has_value(); }
  std::string DescribeMissing() const override;
  /// The number of tasks of the last run that had shut down or been lost before this one; std::nullopt if
  /// this task is still running or unknown.
  std::optional<int> GoneAfter(const std::string& task_id) const;

 private:
  enum class Stage {
    kGathering,  ///< until all workers have joined
    kRunning,    ///< until one worker fails, or to the end of the job
    kBroken      ///< until all workers have joined again
  };
  /// A peer that has connected to the tracker.
  struct Peer {
    wire::collective::WorkerStream stream;
    wire::collective::Hello hello;
    std::int32_t port = 0;
    std::int32_t error_port = 0;
    int leaves_run = 0;  ///< the run in which it announced its shutdown; 0 if it has not
    /// The tracker's connection to the worker's error port while the worker waits for the others, and again
    /// while it leaves. It is closed once the leaving worker has closed this Peer's connection.
    ConnectionId error_connection = 0;
  };
  /// An error port that the tracker has connected to.
  struct ErrorPort {
    int rank = -1;             ///< the member that owns the port; -1 while the worker waits for the others
    ConnectionId waiting = 0;  ///< the connection on which the worker waits for the others
    bool reached = false;      ///< whether the connection was established
  };
  struct Member {
    std::string task_id;
    std::string host;
    ConnectionId error_connection = 0;    ///< the connection to its error port; 0 if none
    std::optional<TimePoint> lost_since;  ///< when that connection ended
    bool shut_down = false;
    bool reported_error = false;
    std::optional<int> gone_after;  ///< how many members had shut down or been lost before this one
  };

  /// The first worker that reported an error, until it is known whether it failed first.
  struct SuspectedFailure {
    int rank = 0;
    std::string what;
    TimePoint since;
  };

  void HandleMessage(ConnectionId connection, wire::collective::WorkerMessage message, TimePoint now);
  void HandleHello(ConnectionId connection, const wire::collective::Hello& hello);
  void HandleStart(ConnectionId connection, const wire::collective::Start& start, TimePoint now);
  void HandleShutdown(ConnectionId connection, TimePoint now);
  void HandlePrint(ConnectionId connection, const wire::collective::Print& print);
  void Left(ConnectionId connection);
  void HandleFailure(ConnectionId connection, const wire::collective::Failure& failure, TimePoint now);
  void CallErrorPort(ConnectionId connection);
  void Bootstrap();
  int RankOf(ConnectionId connection) const;
  void Gone(Member& member);
  void ErrorConnectionClosed(ConnectionId error_connection, std::string_view why, TimePoint now);
  std::optional<int> LostBefore(int rank) const;
  void Confirm(TimePoint now);
  void Break(int rank, std::string what, TimePoint now);
  void CloseErrorConnection(ConnectionId error_connection);
  void Forget(ConnectionId connection);
  std::string Describe(int rank) const;
  bool HasDeadline() const { return options_.timeout.count() > 0 && stage_ != Stage::kRunning; }

  ConnectionTable& connections_;
  JobOptions options_;
  Stage stage_ = Stage::kGathering;
  std::unordered_map<ConnectionId, Peer> peers_;
  /// The error ports of waiting workers and of members.
  std::unordered_map<ConnectionId, ErrorPort> error_ports_;
  UnrankedWorkers unranked_{std::string_view()};
  std::vector<Member> members_;  ///< the members of the current or the last run, by rank
  int run_ = 0;                  ///< number of times that all workers have joined
  int num_shut_down_ = 0;
  int num_leaving_ = 0;  ///< workers that have shut down but still have an open connection
  int num_lost_ = 0;
  int num_gone_ = 0;
  std::optional<SuspectedFailure> suspected_;
  bool was_broken_ = false;  ///< in an elastic job: whether the loss of a member has been reported
  bool finished_ = false;
  TimePoint incomplete_since_;
};

}  // namespace warren::tracker
