// Collectives in two levels: inside each host through shared memory (host/host_collectives.h), between the
// hosts by the algorithm that the choice table selects, which is run by one rank or by all ranks of each
// host.
//
// Allreduce of short vectors, or on hosts of different sizes: each host reduces to its leader, the leaders
// allreduce, each leader broadcasts. Allreduce of long vectors on hosts of equal size: each host
// reduce-scatters, so that its i-th rank holds slice i; the i-th ranks of all hosts allreduce their slice;
// each host allgathers. All ranks on a host then use the network at the same time, and the traffic is the
// same as between leaders only.
//
// Cost with H hosts and S bytes: between hosts, the cost of the selected algorithm with H members; inside a
// host, each rank copies up to S bytes into shared memory and up to S bytes out of it.
//
// Contributions are combined in the engine's order over the ranks (reduce/order.h) if
// HostLayout::keeps_order() is true (base/layout.h).
//
// Sources: Jain et al., "Framework for scalable intra-node collective operations using shared memory", SC
// 2018; Bayatpour et al., "Scalable reduction collectives with data partitioning-based multi-leader design",
// SC 2017.
#pragma once

#include <cstddef>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void AllreduceHierarchical(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction);
void ReduceHierarchical(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                        int root);
void BroadcastHierarchical(PeerGroup& group, void* buffer, std::size_t bytes, int root);
void BarrierHierarchical(PeerGroup& group);

}  // namespace warren::collective
