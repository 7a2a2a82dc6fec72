// Collectives over a binomial tree that is the order of reduction itself: where two nodes of the order meet,
// the member that holds the sum of one node sends it to the member that holds the sum of the other. A node's
// sum is held by the root if the root belongs to the node, otherwise by the node's lowest member, so that a
// reduce costs the same whichever member is the root. Broadcast runs the tree backwards.
//
// Vectors longer than a chunk are pipelined: chunk c climbs level k in step c + k. A member's actions in one
// step concern different chunks, so they run concurrently. Received chunks are combined directly with the
// buffer, so the algorithm needs no scratch memory.
//
// With n members, L = ceil(log2 n), S bytes and C chunks:
//                steps           bytes sent by a member, at most      messages, at most
//   reduce       L + C - 1       S                                    C
//   broadcast    L + C - 1       L S (the root)                       L C
//   allreduce    2 L + C - 1     L S                                  L C
//
// Best for short vectors if the number of messages matters: n - 1 messages in total for a reduce or a
// broadcast. The root of a long broadcast sends L S bytes; the ring algorithm spreads that load.
//
// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, sections 3 and 4.
#pragma once

#include <cstddef>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void ReduceTree(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction, int root);
void BroadcastTree(PeerGroup& group, void* buffer, std::size_t bytes, int root);
/// Reduces to member 0 and broadcasts from there; the first chunks are broadcast while the last chunks are
/// still being reduced.
void AllreduceTree(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction);
/// An allreduce of one byte.
void BarrierTree(PeerGroup& group);

}  // namespace warren::collective
