#include "rabit_engine/collective/hierarchical.h"

#include <algorithm>
#include <vector>

#include "rabit_engine/collective/choice.h"
#include "rabit_engine/collective/slices.h"
#include "rabit_engine/collective/two_levels.h"
#include "rabit_engine/host/host_collectives.h"

namespace warren::collective {
namespace {

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
