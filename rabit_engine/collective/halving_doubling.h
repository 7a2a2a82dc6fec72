// Allreduce by a reduce-scatter that halves the vector and an allgather that doubles it again.
//
// The reduce-scatter climbs the tree that the order of reduction forms (reduce/order.h). Level 0 joins
// neighbors, level 1 joins pairs, and so on: distances double, so that sums are formed in the order of
// reduction. When two nodes of equal size meet, every member keeps one half of its window (the part of the
// vector that it still reduces) and gives the other half to its counterpart, which holds the same window in
// the other node. If the right node is smaller, its members give all they hold to the members of the left
// node, whose windows are subdivisions of the givers' windows, and then wait for the allgather, which takes
// the same steps in reverse.
//
// With n members, L = ceil(log2 n) and S bytes:
//   steps                          2 L
//   bytes sent by a member         2 S (n - 1)/n for powers of two, at most 2 S otherwise
//   messages sent by a member      2 L; in a small last node up to n - 1 if that is more
// The algorithm needs no scratch memory: received data is combined directly with the buffer.
//
// Best for medium and long vectors, in particular if n is a power of two: close to the fewest bytes possible,
// in few steps.
//
// Sources: R. Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004; R. Thakur, R.
// Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1), 2005,
// section 4.5. The published version halves distances and folds surplus members first; this version keeps the
// order.
#pragma once

#include <cstddef>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void AllreduceHalvingDoubling(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction);

}  // namespace warren::collective
