// Collectives for communicators whose ranks are all on one host, through the memory that these ranks share
// (host/host_collectives.h).
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void AllreduceSharedMemory(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction);
void AllreduceIntoSharedMemory(PeerGroup& group, const void* input, void* buffer, std::size_t count,
                               const Reduction& reduction);
void ReduceSharedMemory(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                        int root);
void ReduceScatterSharedMemory(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                               const Reduction& reduction);
void AllgatherSharedMemory(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets);
void BroadcastSharedMemory(PeerGroup& group, void* buffer, std::size_t bytes, int root);
void AllToAllSharedMemory(PeerGroup& group, const void* from, std::span<const std::size_t> sent, void* to,
                          std::span<const std::size_t> received);
void BarrierSharedMemory(PeerGroup& group);

}  // namespace warren::collective
