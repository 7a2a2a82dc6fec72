// For each link that must be made between two ranks, decides which rank connects, and when. Does no I/O.
//
// A worker that requests links reports which of its links still work; for each other link, it is told either
// where to connect or that the peer will connect to it. A peer can be named only once its listening port is
// known, and it reports its port only after its own connections are made. The levels of the topology
// determine which side connects, so that workers form short chains instead of one queue: a worker is answered
// as soon as those of its neighbors that have lower levels listen, whatever the order of arrival.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tracker/topology.h"

namespace warren::tracker {

class LinkBroker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A plan that can be sent to `rank` now.
  struct Plan {
    int rank = 0;
    std::vector<int> connect;  ///< peers to connect to, all listening
    int num_accept = 0;
  };

  /// A connection to a listening peer can still fail (a full backlog, a lost packet). The connection is
  /// retried at the same port after this delay, which doubles up to the maximum, until the peer listens at a
  /// new port.
  static constexpr std::chrono::milliseconds kFirstRetryDelay{50};
  static constexpr std::chrono::milliseconds kMaxRetryDelay{2000};

  /// A peer that already listens for certain ranks cannot be told to accept one more. It may even be waiting
  /// for a rank that itself waits for the rank left out. Example: C connects to A and B, A connects to B, and
  /// A was restarted after B had been told to accept only C. A rank that has waited this long therefore
  /// connects instead of a rank that the peer expects. The rank that was replaced waits until the peer, which
  /// then lacks a link, recovers.
  static constexpr std::chrono::milliseconds kBorrowDelay{500};

  explicit LinkBroker(const Topology& topology);

  /// `rank` begins an exchange; its previous listening port is no longer valid.
  void Join(int rank);
  /// The exchange of `rank` ended before `rank` listened.
  void Leave(int rank);
  /// `rank` requests links to all its neighbors except those in `good`. `retry`: connections of its last plan
  /// failed. Returns the first rank in `good` that is not a neighbor, if any; the request is then ignored.
  std::optional<int> ReportGood(int rank, const std::vector<int>& good, bool retry, TimePoint now);
  /// All connections of the last plan of `rank` are made.
  void ReportLinked(int rank);
  /// `rank` now listens for the links it was told to accept.
  void ReportListening(int rank);

  /// Returns the plans that have become ready since the last call. Must be called again at NextRetry().
  std::vector<Plan> TakeReady(TimePoint now);
  std::optional<TimePoint> NextRetry() const;

  /// Restores the state of the previous tracker's broker: `rank` listens, and the ranks in `awaited` must
  /// still connect to it.
  void Restore(int rank, const std::vector<int>& awaited);
  /// Restores the state of the previous tracker's broker: `rank`, which has not finished its exchange, has
  /// connected to `peers`.
  void RestoreLinks(int rank, const std::vector<int>& peers);
  /// The peers that the last plan of `rank` told it to connect to, except those that have begun a new
  /// exchange since then.
  std::vector<int> Planned(int rank) const;
  /// The ranks that must still connect to `rank`.
  const std::set<int>& awaited(int rank) const { return nodes_[rank].accept; }

  bool listening(int rank) const { return nodes_[rank].state == State::kListening; }
  /// Ranks that another rank waits for and that are not in an exchange: they must recover first.
  std::set<int> Absentees() const;
  /// True if every rank has finished an exchange and no rank awaits another one.
  bool complete() const { return num_listening_ == topology_->size() && open_links_ == 0; }

 private:
  enum class State { kAbsent, kJoined, kWaiting, kPlanned, kListening };
  struct Node {
    State state = State::kAbsent;
    std::vector<int> connect;  ///< peers this rank must connect to
    /// For each peer in `connect`, the peer's `generation` when the plan was sent.
    std::vector<std::uint64_t> planned;
    std::set<int> accept;          ///< peers that must still connect to this rank
    std::uint64_t generation = 0;  ///< counts exchanges; distinguishes a new port from an old one
    std::vector<std::pair<int, std::uint64_t>> failed;  ///< unreachable peers, and their generations
    std::chrono::milliseconds retry_delay{0};
    TimePoint retry_at{};   ///< when the peers in `failed` may be retried
    TimePoint borrow_at{};  ///< when this rank may connect instead of another one (kBorrowDelay)
  };

  bool Ready(int rank, TimePoint now) const;
  void TakePlace(int rank, std::size_t connection);
  void CheckAgainAt(int rank, TimePoint when) { wakeups_.emplace(when, rank); }
  bool FailedBefore(const Node& node, int peer) const;
  void ClearAccept(Node& node);
  void ForgetWakeups(int rank);
  void SetState(int rank, State state);

  const Topology* topology_;
  std::vector<Node> nodes_;
  std::set<int> check_;                          ///< waiting ranks to re-check in the next TakeReady
  std::set<std::pair<TimePoint, int>> wakeups_;  ///< waiting ranks to check again at a given time
  int num_listening_ = 0;
  std::int64_t open_links_ = 0;
};

}  // namespace warren::tracker
