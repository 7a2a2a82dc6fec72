// Allreduce in two levels for hosts whose ranks are not a subtree of the order of reduction (reduce/order.h),
// such as hosts with 3 or 6 ranks, or with different numbers of ranks. Such a host cannot combine its ranks'
// values into one sum, but it can hold one partial sum for each maximal subtree of the order among its ranks,
// and so can a run of consecutive hosts (partial_sums.h).
//
//   inside     each host reduces to its partial sums, through shared memory
//   between    runs of 1, 2, 4, ... hosts exchange their partial sums and combine siblings, until there is
//              one sum over all ranks. Short vectors are exchanged as in recursive doubling, long ones as in
//              halving-doubling (plans.h)
//   inside     each host broadcasts or allgathers the sum
//
// For short vectors, or on hosts of different sizes, one rank on each host communicates with other hosts. For
// long vectors on hosts of equal size, all ranks communicate, each with its slice, as in hierarchical.h.
//
// With H hosts, S bytes and p partial sums for each run of hosts (one to three for most runs, and at most
// 2 log2 of the number of ranks):
//                 steps        bytes sent by a host    messages sent by a participating rank
//   short         log2 H       p S log2 H              log2 H
//   long          2 log2 H     (1 + p) S               (1 + p) log2 H
// If the last run of hosts is smaller than its sibling, it serves all hosts of the sibling, as in recursive
// doubling and halving-doubling.
//
// The ranks on each host must be consecutive. Vectors are processed in chunks, so that the scratch memory
// need only hold the partial sums of one chunk.
#pragma once

#include <cstddef>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void AllreduceHierarchicalSubtrees(PeerGroup& group, void* buffer, std::size_t count,
                                   const Reduction& reduction);

}  // namespace warren::collective
