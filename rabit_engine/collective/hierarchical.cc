#include "rabit_engine/collective/hierarchical.h"

#include <algorithm>
#include <vector>

#include "rabit_engine/collective/choice.h"
#include "rabit_engine/collective/slices.h"
#include "rabit_engine/host/host_collectives.h"

namespace warren::collective {
namespace {

/// From here on all ranks of a host work on the network, a slice each; below, the leaders alone. A slice
/// costs two more meetings inside the host.
constexpr std::size_t kSliceBytes = std::size_t{64} << 10;

/// All slices of a host cross its one network interface: one of them costs more than so many bytes alone
/// would. As if there were no more slices than this is the best at 10 and 100 GbE together (simulated:
/// bench/loggp).
constexpr std::size_t kRanksThatShare = 4;

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
    PeerGroup group(world_.transport(), ranks, my_host_, world_.tag(), world_.deadline());
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

AllreduceFunction AllreduceBetween(const Levels& levels, std::size_t bytes, const Reduction& reduction) {
  Situation situation = levels.BetweenHosts(Collective::kAllreduce, bytes);
  situation.order_matters = reduction.order_matters();
  return Choose(situation, {}).allreduce;
}

void AllreduceByLeaders(const Levels& levels, void* buffer, std::size_t count, const Reduction& reduction) {
  const std::size_t bytes = count * reduction.element_bytes();
  if (levels.memory() != nullptr) levels.memory()->Reduce(levels.tag(), buffer, count, reduction, 0);
  const AllreduceFunction between = AllreduceBetween(levels, bytes, reduction);
  levels.Between(levels.Leaders(), [&](PeerGroup& leaders) { between(leaders, buffer, count, reduction); });
  if (levels.memory() != nullptr) levels.memory()->Broadcast(levels.tag(), buffer, bytes, 0);
}

void AllreduceBySlices(const Levels& levels, void* buffer, std::size_t count, const Reduction& reduction) {
  const std::size_t element_bytes = reduction.element_bytes();
  const int ranks_of_host = static_cast<int>(levels.layout().ranks_of(levels.my_host()).size());
  const std::vector<std::size_t> offsets = EvenOffsets(count, ranks_of_host);
  const Range own = Slice(offsets, levels.local_index());
  if (levels.memory() != nullptr) levels.memory()->ReduceScatter(levels.tag(), buffer, offsets, reduction);
  const std::size_t sharing = std::min<std::size_t>(ranks_of_host, kRanksThatShare);
  const AllreduceFunction between = AllreduceBetween(levels, count * element_bytes / sharing, reduction);
  levels.Between(levels.Counterparts(), [&](PeerGroup& counterparts) {
    between(counterparts, static_cast<std::byte*>(buffer) + own.begin * element_bytes, own.size(), reduction);
  });
  if (levels.memory() != nullptr) {
    levels.memory()->Allgather(levels.tag(), buffer, InBytes(offsets, element_bytes));
  }
}

}  // namespace

void AllreduceHierarchical(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  const Levels levels(group);
  const bool slices = levels.layout().hosts_are_equal() && count * reduction.element_bytes() >= kSliceBytes;
  (slices ? AllreduceBySlices : AllreduceByLeaders)(levels, buffer, count, reduction);
}

void ReduceHierarchical(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                        int root) {
  const Levels levels(group);
  const std::vector<int> ranks = levels.Representatives(root);
  if (levels.memory() != nullptr) {
    const int receiver = levels.layout().local_index(ranks[levels.my_host()]);
    levels.memory()->Reduce(levels.tag(), buffer, count, reduction, receiver);
  }
  Situation situation = levels.BetweenHosts(Collective::kReduce, count * reduction.element_bytes());
  situation.order_matters = reduction.order_matters();
  const ReduceFunction between = Choose(situation, {}).reduce;
  levels.Between(ranks, [&](PeerGroup& hosts) {
    between(hosts, buffer, count, reduction, levels.layout().host_of(root));
  });
}

void BroadcastHierarchical(PeerGroup& group, void* buffer, std::size_t bytes, int root) {
  const Levels levels(group);
  const std::vector<int> ranks = levels.Representatives(root);
  const BroadcastFunction between = Choose(levels.BetweenHosts(Collective::kBroadcast, bytes), {}).broadcast;
  levels.Between(ranks,
                 [&](PeerGroup& hosts) { between(hosts, buffer, bytes, levels.layout().host_of(root)); });
  if (levels.memory() != nullptr) {
    const int sender = levels.layout().local_index(ranks[levels.my_host()]);
    levels.memory()->Broadcast(levels.tag(), buffer, bytes, sender);
  }
}

void BarrierHierarchical(PeerGroup& group) {
  const Levels levels(group);
  if (levels.memory() != nullptr) levels.memory()->Barrier(levels.tag());
  const BarrierFunction between = Choose(levels.BetweenHosts(Collective::kBarrier, 0), {}).barrier;
  levels.Between(levels.Leaders(), [&](PeerGroup& leaders) { between(leaders); });
  if (levels.memory() != nullptr) levels.memory()->Barrier(levels.tag());
}

}  // namespace warren::collective
