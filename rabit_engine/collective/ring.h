// Collectives in which every member sends only to the next member and receives only from the previous member.
//
// Reduce-scatter: slice j starts at member j + 1 and travels around to member j, absorbing each member's
// values on the way. It travels as the partial sums of the members passed so far (partial_sums.h): a single
// sum if the order of reduction does not matter, as in the classic ring; otherwise one for each maximal
// subtree of the order. All slices travel concurrently, chunk by chunk. Allgather: each slice travels once
// around the ring. Broadcast: each chunk passes from member to member, starting at the root.
//
// With n members, L = ceil(log2 n), S bytes (equal slices) and C chunks of a slice (broadcast: of the
// vector):
//                     steps           bytes sent by a member                          messages
//   reduce-scatter    C (n - 1)       S (n - 1)/n, times up to about L if the         C (n - 1)
//                                     order matters
//   allgather         n - 1           S (n - 1)/n                                     n - 1
//   allreduce         the sum of reduce-scatter and allgather
//   broadcast         C + n - 2       S (the last member: 0)                          C
// Scratch: 2 partial sums if the order does not matter, 4 L otherwise, of one chunk each.
//
// Best for long vectors of integers, and for long allgathers and broadcasts: each member has only two links,
// and no member sends more than the others.
//
// Sources: P. Patarasu, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
// 69(2), 2009; R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 4.1 (ring allgather). The use of partial sums instead of one running
// sum is our own addition.
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void ReduceScatterRing(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                       const Reduction& reduction);
void AllgatherRing(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets);
void BroadcastRing(PeerGroup& group, void* buffer, std::size_t bytes, int root);
void AllreduceRing(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction);

}  // namespace warren::collective
