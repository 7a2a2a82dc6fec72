// Collectives that consist of ceil(log2 n) exchanges, each with a member twice as far away as in the previous
// exchange.
//
// Allreduce: at level k the members of two neighboring nodes of the order (reduce/order.h) exchange their
// sums, each with its counterpart, so that all members of the joint node hold the joint sum. If the right
// node is smaller (n is not a power of two), its members also serve the left members that have no
// counterpart, an equal number each; they have time for this, because they have climbed fewer levels.
//
// With n members, L = ceil(log2 n) and S bytes:
//                steps   bytes sent by a member                     messages
//   allreduce    L       L S; in a small last node up to (n - 1) S  L; in a small last node up to n - 1
//   allgather    L       (n - 1)/n S if slices are equal            L; up to 2 L if slices wrap around
//   barrier      L       L                                          L
// The steps and messages of an allreduce are for each chunk of 256 KiB.
//
// Best for short messages, whose cost is dominated by the number of steps. Scratch: one chunk.
//
// Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 4.5 (recursive doubling). J. Bruck et al., "Efficient Algorithms for
// All-to-All Communications in Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997 (allgather). D.
// Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization", IJPP 17(1), 1988.
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void AllreduceRecursiveDoubling(PeerGroup& group, void* buffer, std::size_t count,
                                const Reduction& reduction);
/// Slices are received in place and may have any lengths.
void AllgatherBruck(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets);
void BarrierDissemination(PeerGroup& group);

}  // namespace warren::collective
