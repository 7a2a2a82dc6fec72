// Collectives in two levels: inside each host through shared memory (shared_memory.h), between the hosts by
// one of the flat algorithms over one rank, or all ranks, of each host.
//
// Allreduce, small, or hosts of different sizes: each host reduces to its leader, the leaders allreduce, each
// leader broadcasts. Large, hosts of equal size: each host reduce-scatters, so that its i-th rank holds slice
// i; the i-th ranks of all hosts allreduce their slice; each host allgathers. All ranks of a host then work
// on the network at the same time, and each byte crosses it as often as between the leaders alone.
//
// With H hosts, S bytes: between hosts as the flat algorithm with H members; inside a host S in, S out.
//
// The order of reduction is the engine's over the ranks where HostLayout::keeps_order() (core/layout.h).
//
// Source of the idea: Jain et al., "Framework for scalable intra-node collective operations using shared
// memory", SC 2018; Bayatpour et al., "Scalable reduction collectives with data partitioning-based
// multi-leader design", SC 2017.
#pragma once

#include <cstddef>
#include <vector>

#include "rabit_engine/collective/algorithm.h"
#include "rabit_engine/collective/shared_memory.h"
#include "rabit_engine/core/layout.h"

namespace warren::collective {

/// The two levels as one rank sees them, for one call. The parts must outlive it.
class Levels {
 public:
  /// `host` is nullptr for a rank that shares memory with nobody.
  Levels(HostCollectives* host, Transport& transport, const HostLayout& layout, const CallTag& tag,
         Clock::time_point deadline);

  /// `between` is the algorithm between the hosts; `slice_by_slice` needs CanSlice().
  void Allreduce(void* buffer, std::size_t count, const Reduction& reduction, AllreduceFunction between,
                 bool slice_by_slice);
  /// Slices need hosts of one size.
  bool CanSlice() const { return layout_.hosts_are_equal(); }
  void Reduce(void* buffer, std::size_t count, const Reduction& reduction, int root);
  void Broadcast(void* buffer, std::size_t bytes, int root, BroadcastFunction between);
  void Barrier();

 private:
  /// One rank of each host: `root` for its own, the leaders for the others.
  std::vector<int> Representatives(int root) const;

  HostCollectives* host_;
  Transport& transport_;
  const HostLayout& layout_;
  CallTag tag_;
  Clock::time_point deadline_;
  int rank_;
  int my_host_;
};

}  // namespace warren::collective
