// One job as the tracker sees it: who has come, which rank they got, whom they link to, who is done.
// A state machine over values: connections are numbers, time is an argument, what it wants done comes out as
// actions. No sockets, threads or clocks, so that it is tested, fuzzed and simulated as it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tracker/link_broker.h"
#include "tracker/note.h"
#include "tracker/topology.h"
#include "wire/classic.h"

namespace warren::tracker {

using TimePoint = std::chrono::steady_clock::time_point;
using ConnectionId = std::uint64_t;

/// What unranked workers are sorted by before ranks are given out.
enum class SortBy { kHost, kTask };

/// Long enough for a batch queue to start the last worker, short enough that nobody waits a day for nothing.
inline constexpr std::chrono::seconds kDefaultTimeout{1800};

struct JobOptions {
  int num_workers = 1;
  SortBy sort_by = SortBy::kHost;
  /// Whether the first worker may ask for another number of workers, as the protocol has it. A launcher that
  /// knows how many it starts says no.
  bool world_size_is_fixed = false;
  /// How long the job may stay with workers missing, from its start or from the moment a worker came back to
  /// be linked again; zero: for ever.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  /// Whether notes are wanted, by which another tracker may take the job over.
  bool takes_notes = false;
};

/// How long a peer may take from connecting to the end of its hello. A worker needs microseconds, or seconds
/// on a machine that starts hundreds at once; a peer that needs longer is not one, or is stuck.
inline constexpr std::chrono::seconds kHelloTimeout{30};
/// While it connects to its peers a worker may sit out TCP's own connect timeout (about two minutes on
/// Linux).
inline constexpr std::chrono::seconds kLinkTimeout{300};
/// Connections that have not said hello yet: twice the workers, and this many strangers. Beyond, the oldest
/// goes.
inline constexpr std::size_t kMaxStrangers = 1024;

struct Send {
  ConnectionId connection;
  std::string bytes;
};
struct Close {
  ConnectionId connection;  ///< after what was sent has gone out
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
struct Print {
  std::string text;
};
struct Finished {
  std::string failure;  ///< empty: every worker has shut down
};
using Action = std::variant<Send, Close, Report, Joined, Assigned, Linked, Print, Note, Finished>;

class Job {
 public:
  Job(JobOptions options, TimePoint now);

  /// Takes the job over from one that wrote these notes, before anybody has come. Who was about to be linked
  /// is expected to come again. Throws std::invalid_argument when no job can have written them.
  void TakeOver(const std::vector<Note>& notes, TimePoint now);

  void Opened(ConnectionId connection, std::string host, std::uint16_t port, TimePoint now);
  void Received(ConnectionId connection, std::string_view bytes, TimePoint now);
  /// The peer closed or the connection broke; `why` is for the log.
  void Closed(ConnectionId connection, std::string_view why);
  /// Makes room when the process can take no more connections: drops the oldest one that has not said hello.
  /// False when there is none.
  bool DropOldestStranger();
  /// Drops peers that took too long and ends the job when its time is up.
  void Tick(TimePoint now);
  /// When Tick has something to do next, if ever.
  std::optional<TimePoint> NextDeadline() const;

  /// What is to be done, in order. Empties the list.
  std::vector<Action> TakeActions();

  int world_size() const { return options_.num_workers; }
  bool finished() const { return finished_; }
  /// True while all links of all workers stand, as far as is known.
  bool linked() const { return linked_; }
  /// Tasks that have a rank.
  std::optional<int> RankOfTask(const std::string& task_id) const;
  /// True when the task's rank has said shutdown and does not wait for others.
  bool TaskHasShutDown(const std::string& task_id) const;
  /// True when the task has been through the making of its links.
  bool TaskHasLinked(const std::string& task_id) const;
  /// True when every worker has been given a rank.
  bool all_assigned() const { return num_assigned_ == options_.num_workers; }
  /// Who came and who did not, for a person to read.
  std::string DescribeMissing() const;

 private:
  /// How far a connection has come. Everything before kWaitsForRank is a stranger.
  enum class Phase {
    kMagic,
    kDialect,
    kHello,
    kPrint,
    kWaitsForRank,
    kAssigned,
    kWaitsForPlan,
    kPlanned,
    kLinked,
    kLeaves
  };
  struct Peer {
    std::string host;
    std::uint16_t port = 0;
    Phase phase = Phase::kMagic;
    wire::Reader head;  ///< bytes before the dialect is known
    wire::classic::WorkerStream stream;
    wire::classic::Hello hello;
    int rank = -1;         ///< the rank this exchange is about, once assigned
    bool retries = false;  ///< its last plan had connections that failed
    std::optional<TimePoint> deadline;
  };
  struct Member {
    bool assigned = false;
    bool shut_down = false;
    bool shut_down_before = false;  ///< ... at the tracker before this one, and may say so again
    bool has_linked = false;        ///< went through an exchange to its end, at least once
    std::string task_id;
    std::string host;
    std::int32_t listen_port = 0;
    ConnectionId exchange = 0;  ///< open start or recover exchange, 0 when none
    ConnectionId waits = 0;     ///< where it waits for the others after its shutdown, 0 when it does not
  };

  Peer* Find(ConnectionId connection);
  std::string Name(ConnectionId connection, const Peer& peer) const;
  void Drop(ConnectionId connection, const std::string& reason);
  void Forget(ConnectionId connection);
  void SetDeadline(ConnectionId connection, Peer& peer, std::optional<TimePoint> deadline);
  void Greeted(ConnectionId connection, Peer& peer);

  bool ReadHead(ConnectionId connection, Peer& peer, std::string_view bytes);
  void HandleMessage(ConnectionId connection, Peer& peer, wire::classic::WorkerMessage message,
                     TimePoint now);
  void HandleHello(ConnectionId connection, Peer& peer, const wire::classic::Hello& hello, TimePoint now);
  void HandleStart(ConnectionId connection, Peer& peer, TimePoint now);
  void HandleRecover(ConnectionId connection, Peer& peer, TimePoint now);
  void HandleShutdown(ConnectionId connection, Peer& peer);
  void HandleWait(ConnectionId connection, Peer& peer);
  void ReturnToJob(int rank);
  void CallBackThoseWhoWait();
  void FinishWhenAllHaveShutDown();
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
  void RequireOwner(int rank, const wire::classic::Hello& hello) const;
  void Unassign(int rank);
  int KnownRank(const wire::classic::Hello& hello) const;
  void AddPending(ConnectionId connection, Peer& peer, TimePoint now);
  void AssignPending(TimePoint now);
  void Assign(ConnectionId connection, Peer& peer, int rank, TimePoint now);
  void SendReadyPlans(TimePoint now);
  void Fail(std::string reason);
  /// Workers are missing, or those that were about to end when this tracker took over.
  bool HasDeadline() const { return options_.timeout.count() > 0 && (!linked_ || awaits_end_); }
  void Log(Severity severity, std::string text);
  void Write(Note note);

  JobOptions options_;      ///< num_workers is what the first worker asked for, if it did
  int configured_workers_;  ///< what the tracker was started with
  std::unordered_map<ConnectionId, Peer> peers_;
  std::set<std::pair<TimePoint, ConnectionId>> deadlines_;
  std::set<ConnectionId> strangers_;  ///< connections without a hello, oldest first
  std::set<ConnectionId> pending_;    ///< workers that wait for a rank
  std::unordered_map<std::string, ConnectionId> pending_tasks_;
  std::unordered_map<std::string, int> task_ranks_;
  std::vector<Member> members_;
  std::optional<Topology> topology_;
  std::optional<LinkBroker> broker_;
  int num_assigned_ = 0;
  int num_shut_down_ = 0;
  bool linked_ = false;
  bool awaits_end_ = false;
  bool finished_ = false;
  TimePoint incomplete_since_;
  std::vector<Action> actions_;
};

}  // namespace warren::tracker
