// Collectives in which every member communicates directly with every other.
//
// Reduce-scatter: every member sends slice j to member j, which combines the n members' values of slice j in
// one pass. This is done in chunks, so that the n - 1 received pieces fit the scratch memory and are
// combined while they are in the cache. Allgather: every member sends its slice to all others. All-to-all:
// every member sends slice j to member j.
//
// With n members and S bytes (equal slices):
//                     steps                        bytes sent by a member   messages
//   reduce-scatter    one per chunk of a slice     S (n - 1)/n              n - 1 per step
//   allgather         1                            S (n - 1)/n              n - 1
//   allreduce         the sum of reduce-scatter and allgather
//   all-to-all        1                            S (n - 1)/n              n - 1
// These are the fewest bytes possible for any n, and each result is combined in a single pass. Scratch: at
// most 1 MiB, or n - 1 elements if those are larger.
//
// Best for long vectors and moderate n, whether or not n is a power of two. Each member needs n - 1 links.
//
// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 4.3 (pairwise exchange); E. Chan et al., "Collective communication:
// theory, practice, and experience", CCPE 19(13), 2007 (bounds).
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/collective/algorithm.h"

namespace warren::collective {

void ReduceScatterPairwise(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                           const Reduction& reduction);
void AllgatherPairwise(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets);
void AllreducePairwise(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction);
void AllToAllPairwise(PeerGroup& group, const void* from, std::span<const std::size_t> sent, void* to,
                      std::span<const std::size_t> received);

}  // namespace warren::collective
