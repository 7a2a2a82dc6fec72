// A job of rabit workers (the classic dialect): which workers have joined, their ranks and links, and which
// workers have shut down. A state machine without I/O, so that it can be tested, fuzzed and simulated:
// connections are numbers, the time is an argument, and actions go to the connection table.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracker/connection_table.h"
#include "tracker/dialect_job.h"
#include "tracker/link_broker.h"
#include "tracker/note.h"
#include "tracker/topology.h"
#include "wire/classic.h"

namespace warren::tracker {

/// The time limit of each step of linking that the worker itself must take. Connecting to peers can take as
/// long as TCP's own connect timeout (about two minutes on Linux).
inline constexpr std::chrono::seconds kLinkTimeout{300};
class ClassicJob final : public DialectJob {
 public:
  ClassicJob(ConnectionTable& connections, const JobOptions& options, TimePoint now);

  /// Expects the workers that were being linked to reconnect.
  void TakeOver(const std::vector<Note>& notes, TimePoint now) override;

  void Opened(ConnectionId connection) override { peers_[connection]; }
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now) override;
  void Closed(ConnectionId connection, std::string_view why, TimePoint now) override;
  void Drop(ConnectionId connection, const std::string& reason) override;
  void Tick(TimePoint now) override;
  void WaitAnew(TimePoint now) override { incomplete_since_ = now; }
  std::optional<TimePoint> NextDeadline() const override;

  bool engaged() const override { return num_assigned_ > 0 || !unranked_.empty(); }
  bool begun() const override { return begun_; }
  bool finished() const override { return finished_; }
  int world_size() const override { return options_.num_workers; }
  /// True while all links between all workers are up, as far as is known.
  bool linked() const override { return linked_; }
  bool all_assigned() const override { return num_assigned_ == options_.num_workers; }
  std::optional<int> RankOfTask(const std::string& task_id) const override;
  bool TaskHasShutDown(const std::string& task_id) const override;
  bool TaskHasLinked(const std::string& task_id) const override;
  std::string DescribeMissing() const override;

 private:
  /// The progress of a connection.
  enum class Phase { kHello, kPrint, kWaitsForRank, kAssigned, kWaitsForPlan, kPlanned, kLinked, kLeaves };
  struct Peer {
    Phase phase = Phase::kHello;
    wire::classic::WorkerStream stream;
    wire::classic::Hello hello;
    int rank = -1;         ///< the rank that it was given or that it shuts down; -1 before
    bool retries = false;  ///< whether connections of its last plan failed
  };
  struct Member {
    bool assigned = false;
    bool shut_down = false;
    /// Whether the worker announced its shutdown to the previous tracker. It may do so once more.
    bool shut_down_before = false;
    bool has_linked = false;  ///< whether the worker has completed an exchange
    std::string task_id;
    std::string host;
    std::int32_t listen_port = 0;
    ConnectionId exchange = 0;  ///< connection on which the worker starts or recovers; 0 if none
    ConnectionId waits = 0;     ///< connection on which the worker sent WaitForOthers; 0 if none
  };

  Peer* Find(ConnectionId connection);
  void Name(ConnectionId connection, const Peer& peer);
  void Forget(ConnectionId connection);

  void HandleMessage(ConnectionId connection, Peer& peer, wire::classic::WorkerMessage message,
                     TimePoint now);
  void HandleHello(ConnectionId connection, Peer& peer, const wire::classic::Hello& hello, TimePoint now);
  void HandleStart(ConnectionId connection, Peer& peer, TimePoint now);
  void HandleRecover(ConnectionId connection, Peer& peer, TimePoint now);
  void HandleShutdown(ConnectionId connection, Peer& peer, TimePoint now);
  void HandlePrint(ConnectionId connection, const Peer& peer, const wire::classic::PrintText& print);
  void HandleWait(ConnectionId connection, Peer& peer);
  void ReturnToJob(int rank);
  void CallBackThoseWhoWait();
  bool SomebodyPrints() const;
  void FinishWhenAllHaveShutDown(TimePoint now);
  void HandleGoodLinks(ConnectionId connection, Peer& peer, const wire::classic::GoodLinks& good,
                       TimePoint now);
  void HandleLinkErrors(ConnectionId connection, Peer& peer, const wire::classic::LinkErrors& errors,
                        TimePoint now);
  void HandleListenPort(ConnectionId connection, Peer& peer, const wire::classic::ListenPort& port,
                        TimePoint now);
  void SettleWorldSize(const wire::classic::Hello& hello);
  void SetWorldSize(int world_size);
  void Replay(const Note& note);
  int ExpectedWorldSize() const;
  void RequireOwner(ConnectionId connection, int rank, const wire::classic::Hello& hello) const;
  void Unassign(int rank);
  bool IsAssigned(int rank) const {
    return rank >= 0 && rank < static_cast<int>(members_.size()) && members_[rank].assigned;
  }
  int KnownRank(const wire::classic::Hello& hello) const;
  void AddPending(ConnectionId connection, Peer& peer, TimePoint now);
  void AssignPending(TimePoint now);
  void Assign(ConnectionId connection, Peer& peer, int rank, TimePoint now);
  void SendReadyPlans(TimePoint now);
  /// Whether the timeout is running: workers are missing, or some workers had shut down already when this
  /// tracker took over.
  bool HasDeadline() const { return options_.timeout.count() > 0 && (!linked_ || awaits_end_); }

  ConnectionTable& connections_;
  JobOptions options_;      ///< num_workers is the number that the first worker requested, if any
  int configured_workers_;  ///< the number with which the tracker was started
  std::unordered_map<ConnectionId, Peer> peers_;
  UnrankedWorkers unranked_{wire::classic::kNoTaskId};
  std::set<ConnectionId> asking_;  ///< the unranked workers that requested a world size
  std::unordered_map<std::string, int> task_ranks_;
  std::vector<Member> members_;
  std::optional<Topology> topology_;
  std::optional<LinkBroker> broker_;
  int num_assigned_ = 0;
  int num_shut_down_ = 0;
  bool begun_ = false;  ///< whether any worker has made all of its links
  bool linked_ = false;
  bool awaits_end_ = false;
  bool finished_ = false;
  std::optional<TimePoint> finish_by_;  ///< kLastWords after the last shutdown
  TimePoint incomplete_since_;
};

}  // namespace warren::tracker
