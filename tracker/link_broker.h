// Decides, for every link between two ranks that has to be made, who connects and when. Pure.
//
// A worker that wants links says which of its links still work; for each of the others it is told either
// where to connect or that it will be connected to. A peer can only be named once its listening port is
// known, and it says its port only after its own connecting is done. Which side connects is fixed by the
// topology's levels, so the workers form short chains instead of one queue: a worker is answered as soon as
// the peers below it listen, in any order of arrival.
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

  /// A plan that can go out to `rank` now.
  struct Plan {
    int rank = 0;
    std::vector<int> connect;  ///< peers, all listening
    int num_accept = 0;
  };

  /// A connection to a peer that listens can still fail (a full backlog, a lost packet): it is tried again at
  /// the same port after this long, doubling up to the maximum, until the peer has listened anew.
  static constexpr std::chrono::milliseconds kFirstRetryDelay{50};
  static constexpr std::chrono::milliseconds kMaxRetryDelay{2000};

  /// A peer that listens for others only cannot be asked to listen for one more, and it may be waiting for a
  /// worker that in turn waits for this one: C connects to A and B, A to B, and A was restarted after B had
  /// been told to wait for C alone. A worker that has waited this long therefore takes the place of another;
  /// whoever then finds no place waits until the peer, which misses a link, comes to recover.
  static constexpr std::chrono::milliseconds kBorrowDelay{500};

  explicit LinkBroker(const Topology& topology);

  /// `rank` begins an exchange: where it listened before is void.
  void Join(int rank);
  /// The exchange of `rank` broke off before it listened.
  void Leave(int rank);
  /// `rank` wants links to all its neighbours but `good`. `retry` tells that its last plan had failures.
  /// Returns the first of `good` that is no neighbour, if any; the report is then not taken.
  std::optional<int> ReportGood(int rank, const std::vector<int>& good, bool retry, TimePoint now);
  /// All connections of the last plan of `rank` stand.
  void ReportLinked(int rank);
  /// `rank` listens from now on for the links it was told to accept.
  void ReportListening(int rank);

  /// Plans that have become ready since the last call. Call it again at NextRetry().
  std::vector<Plan> TakeReady(TimePoint now);
  std::optional<TimePoint> NextRetry() const;

  /// What another broker knew: `rank` listens, and `awaited` are still to connect to it.
  void Restore(int rank, const std::vector<int>& awaited);
  /// ... and `rank`, in the middle of its exchange, has connected to `peers`.
  void RestoreLinks(int rank, const std::vector<int>& peers);
  /// Whom the last plan of `rank` told it to connect to, without those that have begun anew since.
  std::vector<int> Planned(int rank) const;
  /// Who is still to connect to `rank`.
  const std::set<int>& awaited(int rank) const { return nodes_[rank].accept; }

  bool listening(int rank) const { return nodes_[rank].state == State::kListening; }
  /// Ranks that another one waits for and that are not on their way: they would have to come and recover.
  std::set<int> Absentees() const;
  /// True when every rank has been through an exchange and every accepted link has been made.
  bool complete() const { return num_listening_ == topology_->size() && open_links_ == 0; }

 private:
  enum class State { kAbsent, kJoined, kWaiting, kPlanned, kListening };
  struct Node {
    State state = State::kAbsent;
    std::vector<int> connect;            ///< peers this rank has to connect to
    std::vector<std::uint64_t> planned;  ///< the generation each of them listened in when the plan went out
    std::set<int> accept;                ///< peers that still have to connect to this rank
    std::uint64_t generation = 0;        ///< counts exchanges: tells a new port from an old one
    std::vector<std::pair<int, std::uint64_t>> failed;  ///< peers and generations a connection failed to
    std::chrono::milliseconds retry_delay{0};
    TimePoint retry_at{};   ///< when peers in `failed` may be tried again
    TimePoint borrow_at{};  ///< when another's place may be taken
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
  std::set<int> check_;                          ///< waiting ranks something changed for
  std::set<std::pair<TimePoint, int>> wakeups_;  ///< waiting ranks that time may make ready
  int num_listening_ = 0;
  std::int64_t open_links_ = 0;
};

}  // namespace warren::tracker
