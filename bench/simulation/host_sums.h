// A design to be judged, not a part of the engine: a hierarchical allreduce that keeps the order of reduction
// where hosts have a number of ranks that is no power of two. A host cannot sum up its ranks, but it can hold
// one partial sum for each maximal subtree of the order that lies inside it ({0,1} and {2}), and so can any
// run of hosts: what travels are as many vectors. Recursive halving and doubling, or recursive doubling
// alone, between the hosts.
//
// Sizes and counts of messages are the design's; what they hold is not, for nobody looks at it here.
#pragma once

#include <cstddef>

#include "rabit_engine/collective/peer_group.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::simulation {

/// Between one rank of each host, all of which call it; a power of two of hosts with `ranks_of_host` ranks
/// each. `count` elements of each partial sum. `halves`: reduce-scatter and allgather, for long vectors.
void AllreduceHostSums(PeerGroup& hosts, void* buffer, std::size_t count, const Reduction& reduction,
                       int ranks_of_host, bool halves);

}  // namespace warren::simulation
