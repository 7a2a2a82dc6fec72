#include "rabit_engine/collective/shared_memory.h"

#include "rabit_engine/host/host_collectives.h"

namespace warren::collective {
namespace {

HostCollectives& Memory(const PeerGroup& group) {
  return *group.hosts()->memory;
}

int LocalIndex(const PeerGroup& group, int root) {
  return group.hosts()->layout->local_index(root);
}

}  // namespace

void AllreduceSharedMemory(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  Memory(group).Allreduce(group.tag(), buffer, count, reduction);
}

void AllreduceIntoSharedMemory(PeerGroup& group, const void* input, void* buffer, std::size_t count,
                               const Reduction& reduction) {
  Memory(group).Allreduce(group.tag(), input, buffer, count, reduction);
}

void ReduceSharedMemory(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                        int root) {
  Memory(group).Reduce(group.tag(), buffer, count, reduction, LocalIndex(group, root));
}

void ReduceScatterSharedMemory(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                               const Reduction& reduction) {
  Memory(group).ReduceScatter(group.tag(), buffer, offsets, reduction);
}

void AllgatherSharedMemory(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets) {
  Memory(group).Allgather(group.tag(), buffer, offsets);
}

void BroadcastSharedMemory(PeerGroup& group, void* buffer, std::size_t bytes, int root) {
  Memory(group).Broadcast(group.tag(), buffer, bytes, LocalIndex(group, root));
}

void AllToAllSharedMemory(PeerGroup& group, const void* from, std::span<const std::size_t> sent, void* to,
                          std::span<const std::size_t> received) {
  Memory(group).AllToAll(group.tag(), from, sent, to, received);
}

void BarrierSharedMemory(PeerGroup& group) {
  Memory(group).Barrier(group.tag());
}

}  // namespace warren::collective
