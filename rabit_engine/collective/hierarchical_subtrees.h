// Allreduce in two levels where a host's ranks are no subtree of the order of reduction (reduce/order.h),
// such as hosts of 3 or 6, or of different sizes. A host cannot sum up its ranks then, but it can hold one
// partial sum for each maximal subtree of the order among them, and so can a run of hosts (partial_sums.h).
//
//   inside     each host reduces to its partial sums, by shared memory
//   between    runs of 1, 2, 4, ... hosts meet and exchange their partial sums; siblings are combined as
//              they meet, so that in the end there is one sum, of all ranks. Short vectors as in recursive
//              doubling, long ones as in halving-doubling (plans.h)
//   inside     each host spreads the sum
//
// Short vectors, or hosts of different sizes: one rank of each host takes part between hosts. Long ones,
// hosts of equal size: all ranks do, a slice each, as in hierarchical.h.
//
// With H hosts and p partial sums (one, two or three for most hosts, at most 2 log2 of the ranks):
//                 steps        bytes sent by a host    messages sent by a rank that takes part
//   short         log2 H       p S log2 H              log2 H
//   long          2 log2 H     (1 + p) S               (1 + p) log2 H
// A last run of hosts that is smaller serves its whole sibling, as there.
//
// Ranks of a host must follow each other. Chunks bound the scratch, which holds the partial sums of one.
#pragma once

#include <cstddef>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void AllreduceHierarchicalSubtrees(PeerGroup& group, void* buffer, std::size_t count,
                                   const Reduction& reduction);

}  // namespace warren::collective
