// An algorithm that other libraries use for large worlds, for comparison: an allreduce over two binary trees
// concurrently. Each tree carries one half of the vector, and a rank that has children in one tree is a leaf
// of the other (except the last rank if the number of ranks is odd), so that all ranks send and receive about
// the same amount. It does not keep the engine's order of reduction, and the engine does not use it.
//
// Source: P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", Parallel Computing 35(12), 2009; NCCL has had it since version 2.4.
#pragma once

#include <cstddef>

#include "rabit_engine/collective/peer_group.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::simulation {

/// Sums the vector up and down the trees, pipelined in chunks of `chunk_bytes`.
void AllreduceDoubleTree(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                         std::size_t chunk_bytes);

}  // namespace warren::simulation
