// Hosts and their ranks as two levels, for collectives that use shared memory within hosts and links between
// hosts.
#pragma once

#include <cstddef>
#include <vector>

#include "rabit_engine/collective/choice.h"
#include "rabit_engine/collective/peer_group.h"

namespace warren::collective {

/// In an allreduce of at least this size, if all hosts have the same number of ranks, all ranks on a host use
/// the network, with a slice each. Otherwise only the leaders use the network: slices cost two more
/// synchronizations inside the host.
inline constexpr std::size_t kSliceBytes = std::size_t{64} << 10;

/// All slices of a host share its network interface, so each takes longer than the same number of bytes would
/// alone. To account for this, the algorithm between hosts is chosen as if there were at most this many
/// slices. This number is the best compromise for 10 and 100 GbE (simulated: bench/loggp).
inline constexpr std::size_t kRanksThatShare = 4;

/// The two levels as seen by one rank, for one call.
class Levels {
 public:
  explicit Levels(PeerGroup& world)
      : world_(world),
        layout_(*world.hosts()->layout),
        memory_(world.hosts()->memory),
        my_host_(layout_.host_of(world.index())) {}

  const HostLayout& layout() const { return layout_; }
  /// nullptr if this rank shares memory with no other rank.
  HostCollectives* memory() const { return memory_; }
  const CallTag& tag() const { return world_.tag(); }
  int my_host() const { return my_host_; }
  int local_index() const { return layout_.local_index(world_.index()); }

  /// Returns one rank on each host: `root` on its own host, the leaders on the other hosts.
  std::vector<int> Representatives(int root) const {
    return OneOfEach(
        [&](int host) { return host == layout_.host_of(root) ? root : layout_.leader_of(host); });
  }
  std::vector<int> Leaders() const { return Representatives(layout_.leader_of(0)); }
  /// Returns the ranks on all hosts that have the same local index as this rank. All hosts must have the same
  /// number of ranks.
  std::vector<int> Counterparts() const {
    return OneOfEach([&](int host) { return layout_.ranks_of(host)[local_index()]; });
  }

  /// Runs `body` with a group of these ranks, one of each host, if this rank is one of them.
  template <typename Body>
  void Between(const std::vector<int>& ranks, Body&& body) const {
    if (world_.index() != ranks[my_host_]) return;
    std::vector<int> of_transport;
    of_transport.reserve(ranks.size());
    for (const int rank : ranks) of_transport.push_back(world_.rank_of(rank));
    PeerGroup group(world_.transport(), of_transport, my_host_, world_.tag(), world_.deadline());
    body(group);
  }

  /// Returns the situation of a collective in which each host acts as one rank.
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
