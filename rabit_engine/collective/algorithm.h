// What an algorithm is to the engine: one row of the registry (registry.cc), with one function for each
// collective that it serves. Algorithms are free functions named <Collective><Algorithm>: AllreduceTree,
// AllgatherRing.
//
// What they all promise:
//  - The result has the bits of the engine's order of reduction (reduce/order.h) over the group's indices,
//    whatever the group's size, the count and the chunks. Only where the order can't be seen in the result
//    (Reduction::order_matters()) may another one be taken.
//  - A result is rounded once: they are given no reduction that rounds (Reduction::rounds()) unless they say
//    that they combine all members' values at once, or there are two members only; floats take its place.
//  - Elements are never split. Buffers need no alignment. Counts may be 0, groups may have one member.
//  - Scratch memory is bounded by a constant of the algorithm or, when that is more, a few elements.
//  - They call PeerGroup::Connect with the peers that they use. Errors are those of PeerGroup::Exchange; the
//    buffer is undefined after one.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "rabit_engine/collective/peer_group.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {

/// Every member's buffer becomes the reduction over all members' buffers of `count` elements.
using AllreduceFunction = void (*)(PeerGroup& group, void* buffer, std::size_t count,
                                   const Reduction& reduction);

/// The same from one buffer, which stays as it is, into another that does not overlap it. For algorithms that
/// need no copy for it; for the others the engine makes one.
using AllreduceIntoFunction = void (*)(PeerGroup& group, const void* input, void* buffer, std::size_t count,
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

/// The root gets every member's bytes: member m's go to [offsets[m], offsets[m + 1]) of its buffer, where its
/// own are. The others bring `bytes`, and have no offsets: only the root knows all of them.
using GatherFunction = void (*)(PeerGroup& group, const void* data, std::size_t bytes, void* buffer,
                                std::span<const std::size_t> offsets, int root);

/// The reverse: every other member gets its bytes of the root's buffer.
using ScatterFunction = void (*)(PeerGroup& group, const void* buffer, std::span<const std::size_t> offsets,
                                 void* data, std::size_t bytes, int root);

/// Member m gets bytes [sent[m], sent[m + 1]) of `from`, and its own for this member come to
/// [received[m], received[m + 1]) of `to`; for itself, too. The buffers do not overlap. A member knows its
/// own offsets only, size() + 1 each.
using AllToAllFunction = void (*)(PeerGroup& group, const void* from, std::span<const std::size_t> sent,
                                  void* to, std::span<const std::size_t> received);

/// Returns when all members have called it.
using BarrierFunction = void (*)(PeerGroup& group);

/// Those that algorithms serve.
inline constexpr Collective kCollectives[] = {
    Collective::kAllreduce,     Collective::kBroadcast, Collective::kAllgather,
    Collective::kReduceScatter, Collective::kReduce,    Collective::kBarrier,
    Collective::kGather,        Collective::kScatter,   Collective::kAllToAll,
};

/// What an algorithm cannot work without; the choice (choice.h) asks for these, however it was made.
enum Need : unsigned {
  kNothing = 0,
  kOneHost = 1U << 0,      ///< all ranks share memory
  kLevels = 1U << 1,       ///< several hosts, some with several ranks
  kFits = 1U << 2,         ///< elements fit the stages in shared memory
  kMayReduce = 1U << 3,    ///< hosts may reduce first
  kConsecutive = 1U << 4,  ///< the ranks of each host follow each other
};

/// One row of the registry. A function that is nullptr: the algorithm does not serve that collective.
struct Algorithm {
  std::string_view name;  ///< what WARREN_ALGORITHM calls it
  unsigned needs = kNothing;
  /// Reductions: all members' values of an element are combined by one CombineAll, never a combination with
  /// another.
  bool combines_at_once = false;
  AllreduceFunction allreduce = nullptr;
  AllreduceIntoFunction allreduce_into = nullptr;  ///< beside allreduce only
  ReduceFunction reduce = nullptr;
  ReduceScatterFunction reduce_scatter = nullptr;
  AllgatherFunction allgather = nullptr;
  BroadcastFunction broadcast = nullptr;
  BarrierFunction barrier = nullptr;
  GatherFunction gather = nullptr;
  ScatterFunction scatter = nullptr;
  AllToAllFunction all_to_all = nullptr;

  bool Serves(Collective collective) const;
};

}  // namespace warren::collective
