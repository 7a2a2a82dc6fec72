// Hosts and their ranks as two levels: what collectives that work inside hosts by shared memory and between
// them by links need of both.
#pragma once

#include <cstddef>
#include <vector>

#include "rabit_engine/collective/choice.h"
#include "rabit_engine/collective/peer_group.h"

namespace warren::collective {

/// From here on all ranks of a host work on the network, a slice each; below, the leaders alone. A slice
/// costs two more meetings inside the host.
inline constexpr std::size_t kSliceBytes = std::size_t{64} << 10;

/// All slices of a host cross its one network interface: one of them costs more than so many bytes alone
/// would. As if there were no more slices than this is the best at 10 and 100 GbE together (simulated:
/// bench/loggp).
inline constexpr std::size_t kRanksThatShare = 4;

/// The two levels as one rank sees them, for one call.
class Levels {
 public:
  explicit Levels(PeerGroup& world)
      : world_(world),
        layout_(*world.hosts()->layout),
        memory_(world.hosts()->memory),
        my_host_(layout_.host_of(world.index())) {}

  const HostLayout& layout() const { return layout_; }
  /// nullptr for a rank that shares memory with nobody.
  HostCollectives* memory() const { return memory_; }
  const CallTag& tag() const { return world_.tag(); }
  int my_host() const { return my_host_; }
  int local_index() const { return layout_.local_index(world_.index()); }

  /// One rank of each host: `root` for its own, the leaders for the others.
  std::vector<int> Representatives(int root) const {
    return OneOfEach(
        [&](int host) { return host == layout_.host_of(root) ? root : layout_.leader_of(host); });
  }
  std::vector<int> Leaders() const { return Representatives(layout_.leader_of(0)); }
  /// The ranks in this one's place on all hosts, which are of one size.
  std::vector<int> Counterparts() const {
    return OneOfEach([&](int host) { return layout_.ranks_of(host)[local_index()]; });
  }

  /// Runs `body` with a group of these ranks, one of each host, on those that are among them.
  template <typename Body>
  void Between(const std::vector<int>& ranks, Body&& body) const {
    if (world_.index() != ranks[my_host_]) return;
    std::vector<int> of_transport;
    of_transport.reserve(ranks.size());
    for (const int rank : ranks) of_transport.push_back(world_.rank_of(rank));
    PeerGroup group(world_.transport(), of_transport, my_host_, world_.tag(), world_.deadline());
    body(group);
  }

  /// Of a collective in which hosts take part as one rank each.
  Situation BetweenHosts(Collective collective, std::size_t bytes) const {
    Situation situation;
    situation.collective = collective;
    situation.bytes = bytes;
    situation.ranks = layout_.num_hosts();
    return situation;
  }

 private:
  template <typename RankOf>
  std::vector<int> OneOfEach(RankOf&& rank_of) const {
    std::vector<int> ranks;
    ranks.reserve(static_cast<std::size_t>(layout_.num_hosts()));
    for (int host = 0; host < layout_.num_hosts(); ++host) ranks.push_back(rank_of(host));
    return ranks;
  }

  PeerGroup& world_;
  const HostLayout& layout_;
  HostCollectives* memory_;
  int my_host_;
};

}  // namespace warren::collective
