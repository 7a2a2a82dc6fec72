// The shapes that all algorithms of this folder have, one for each collective, so that the choice among them
// is a table of pointers. Algorithms are free functions named <Collective><Algorithm>: AllreduceTree,
// AllgatherRing.
//
// What they all promise:
//  - The result has the bits of the engine's order of reduction (reduce/order.h) over the group's indices,
//    whatever the group's size, the count and the chunks. Only where the order can't be seen in the result
//    (Reduction::order_matters()) may another one be taken.
//  - Elements are never split. Buffers need no alignment. Counts may be 0, groups may have one member.
//  - Scratch memory is bounded by a constant of the algorithm or, when that is more, a few elements.
//  - They call PeerGroup::Connect with the peers that they use. Errors are those of PeerGroup::Exchange; the
//    buffer is undefined after one.
#pragma once

#include <cstddef>
#include <span>

#include "rabit_engine/collective/peer_group.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {

/// Every member's buffer becomes the reduction over all members' buffers of `count` elements.
using AllreduceFunction = void (*)(PeerGroup& group, void* buffer, std::size_t count,
                                   const Reduction& reduction);

/// Like allreduce, but only the root's buffer holds the result; the others' are left undefined.
using ReduceFunction = void (*)(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                                int root);

/// Like allreduce, but only elements [offsets[index], offsets[index + 1]) of the buffer hold the result; the
/// rest is left undefined. size() + 1 offsets in elements, beginning with 0, the same on all members.
using ReduceScatterFunction = void (*)(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                                       const Reduction& reduction);

/// Every member brings bytes [offsets[index], offsets[index + 1]) of the buffer and gets the others'.
/// size() + 1 offsets in bytes, the same on all members.
using AllgatherFunction = void (*)(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets);

/// Every member's buffer becomes the root's.
using BroadcastFunction = void (*)(PeerGroup& group, void* buffer, std::size_t bytes, int root);

/// Returns when all members have called it.
using BarrierFunction = void (*)(PeerGroup& group);

}  // namespace warren::collective
