// The interface of algorithms. Each algorithm is one row of the registry (registry.h), with one function for
// each collective that it serves. These are free functions named <Collective><Algorithm>, such as
// AllreduceTree or AllgatherRing.
//
// All algorithms guarantee:
//  - The result has the bits of the engine's order of reduction (reduce/order.h) over the group's indices,
//    for every group size, count and chunk size. Another order may be used only if it does not affect the
//    result (Reduction::order_matters()), or between hosts if WARREN_REPRODUCIBLE=0 allows it (kMayReduce).
//  - A result is rounded once. If the reduction rounds (Reduction::rounds()), an algorithm is given floats,
//    unless it declares that it combines all members' values in one step, or there are only two members.
//  - Elements are never split. Buffers need no alignment. Counts may be 0, groups may have one member.
//  - Their scratch memory has an upper bound that does not depend on the length of the vector.
//  - Algorithms call PeerGroup::Connect with the peers that they use. Errors are those of
//    PeerGroup::Exchange; after an error the buffer's contents are undefined.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "rabit_engine/call/collective.h"
#include "rabit_engine/collective/peer_group.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren::collective {

/// Every member's buffer becomes the reduction of all members' buffers of `count` elements.
using AllreduceFunction = void (*)(PeerGroup& group, void* buffer, std::size_t count,
                                   const Reduction& reduction);

/// Like AllreduceFunction, but leaves the input unchanged and writes to another buffer, which does not
/// overlap the input. Only for algorithms that can do this without a copy; for all other algorithms the
/// engine copies the input first.
using AllreduceIntoFunction = void (*)(PeerGroup& group, const void* input, void* buffer, std::size_t count,
                                       const Reduction& reduction);

/// Like allreduce, but only the root's buffer holds the result; the other buffers are undefined.
using ReduceFunction = void (*)(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                                int root);

/// Like allreduce, but only elements [offsets[index()], offsets[index() + 1]) of the buffer hold the result;
/// the rest is undefined. There are size() + 1 offsets in elements, starting at 0, the same on all members.
using ReduceScatterFunction = void (*)(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                                       const Reduction& reduction);

/// Every member contributes bytes [offsets[index()], offsets[index() + 1]) of the buffer and receives the
/// other members' slices. There are size() + 1 offsets in bytes, the same on all members.
using AllgatherFunction = void (*)(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets);

/// Copies the root's buffer to all members.
using BroadcastFunction = void (*)(PeerGroup& group, void* buffer, std::size_t bytes, int root);

/// The root receives every other member's data: member m's data goes to bytes [offsets[m], offsets[m + 1]) of
/// the root's `buffer`, which already contains the root's own data. Only the root passes offsets; the others
/// pass `data` and `bytes`.
using GatherFunction = void (*)(PeerGroup& group, const void* data, std::size_t bytes, void* buffer,
                                std::span<const std::size_t> offsets, int root);

/// The reverse of gather: every other member receives its part of the root's buffer.
using ScatterFunction = void (*)(PeerGroup& group, const void* buffer, std::span<const std::size_t> offsets,
                                 void* data, std::size_t bytes, int root);

/// Sends bytes [sent[m], sent[m + 1]) of `from` to member m, and receives m's data into bytes [received[m],
/// received[m + 1]) of `to`; this member's own slice is copied, too. The buffers must not overlap. `sent` and
/// `received` have size() + 1 offsets each, which the other members need not know.
using AllToAllFunction = void (*)(PeerGroup& group, const void* from, std::span<const std::size_t> sent,
                                  void* to, std::span<const std::size_t> received);

/// Returns once all members have called the function.
using BarrierFunction = void (*)(PeerGroup& group);

/// The collectives that algorithms serve.
inline constexpr Collective kCollectives[] = {
    Collective::kAllreduce,     Collective::kBroadcast, Collective::kAllgather,
    Collective::kReduceScatter, Collective::kReduce,    Collective::kBarrier,
    Collective::kGather,        Collective::kScatter,   Collective::kAllToAll,
};

/// The requirements of an algorithm, checked for every choice (choice.h), forced or not.
enum Need : unsigned {
  kNothing = 0,
  kOneHost = 1U << 0,      ///< all ranks share memory
  kLevels = 1U << 1,       ///< several hosts, some with several ranks
  kFits = 1U << 2,         ///< elements are small enough for the stages in shared memory
  kMayReduce = 1U << 3,    ///< hosts may reduce first, or the order does not matter
  kConsecutive = 1U << 4,  ///< the ranks on each host are consecutive
};

/// One row of the registry. A null function means that the algorithm does not serve that collective.
struct Algorithm {
  std::string_view name;  ///< the algorithm's name in WARREN_ALGORITHM
  unsigned needs = kNothing;
  /// For reductions: whether all members' values of an element are combined by a single CombineAll, so that
  /// no partial results are combined further.
  bool combines_at_once = false;
  AllreduceFunction allreduce = nullptr;
  AllreduceIntoFunction allreduce_into = nullptr;  ///< only in addition to allreduce
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
