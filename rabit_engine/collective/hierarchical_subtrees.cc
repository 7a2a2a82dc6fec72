#include "rabit_engine/collective/hierarchical_subtrees.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "rabit_engine/collective/partial_sums.h"
#include "rabit_engine/collective/plans.h"
#include "rabit_engine/collective/two_levels.h"
#include "rabit_engine/host/host_collectives.h"

namespace warren::collective {
namespace {

/// The chunk size for the part of the vector that one rank exchanges with other hosts. All steps are repeated
/// for every chunk.
constexpr std::size_t kSubtreeChunkBytes = std::size_t{512} << 10;

/// If each rank that communicates with other hosts has more bytes of the vector than this (counting at most
/// kRanksThatShare ranks per host), the hosts exchange halves instead of whole vectors: fewer bytes, but
/// twice as many steps. The value was simulated, not measured.
constexpr std::size_t kWholeBytes = std::size_t{16} << 10;

/// Returns the range of ranks that are on the hosts [hosts.begin, hosts.end).
Subtree RanksOf(const HostLayout& layout, Subtree hosts) {
  return {layout.leader_of(hosts.begin), layout.ranks_of(hosts.end - 1).back() + 1};
}

/// Returns the end of each maximal subtree among the host's ranks, as a local index; if the order does not
/// matter, all ranks on the host count as one subtree.
std::vector<int> EndsInsideHost(const HostLayout& layout, int host, const Reduction& reduction) {
  const auto [first, end] = RanksOf(layout, {host, host + 1});
  if (!reduction.order_matters()) return {end - first};
  std::vector<int> ends;
  for (const Subtree subtree : Decompose(first, end, layout.world_size()))
    ends.push_back(subtree.end - first);
  return ends;
}

/// The partial sums of consecutive hosts that this rank holds and combines with the partial sums of its peers
/// on other hosts.
class HostSums {
 public:
  HostSums(const HostLayout& layout, const Reduction& reduction, std::size_t max_count)
      : layout_(layout),
        own_(reduction, layout.world_size(), max_count),
        arriving_(reduction, layout.world_size(), max_count) {}

  /// Returns the memory for the partial sums of one host, to be filled in.
  std::span<std::byte> Begin(int host, std::size_t count) {
    Hold(own_, {host, host + 1}, count);
    return own_.values();
  }

  /// Combines this host's partial sums with those of all other hosts, and stores the sum over all ranks in
  /// the vector.
  void Allreduce(PeerGroup& hosts, const VectorView& vector, std::size_t count, bool halves) {
    const auto plan = halves ? PlanHalving : PlanDoubling;
    const std::vector<PlanStep> steps = plan(hosts.index(), hosts.size(), count);
    hosts.Connect(PeersOf(steps));
    Range window{0, count};
    for (const PlanStep& step : steps) Meet(hosts, step, window);
    if (steps.back().kept) own_.Total(vector.At(window.begin));
    if (halves) AllgatherBack(hosts, steps, vector);
  }

 private:
  void Hold(PartialSums& sums, Subtree hosts, std::size_t count) const {
    const auto [first, end] = RanksOf(layout_, hosts);
    sums.Hold(first, end - first, count);
  }

  /// Runs one step. `window`, which is updated, is the range of the vector that this rank holds.
  void Meet(PeerGroup& hosts, const PlanStep& step, Range& window) {
    const auto inside = [&](Range range) {
      return Range{range.begin - window.begin, range.end - window.begin};
    };
    const bool is_left = Contains(step.nodes.left, hosts.index());
    std::vector<Send> sends;
    for (const Part& part : step.given) {
      for (const auto piece : own_.ValuesOf(inside(part.range))) {
        sends.push_back({part.peer, piece.data(), piece.size()});
      }
    }
    std::vector<Receive> receives;
    if (step.kept) {
      Hold(arriving_, is_left ? step.nodes.right : step.nodes.left, step.kept->range.size());
      receives.push_back({step.kept->peer, arriving_.values().data(), arriving_.values().size(), {}});
    }
    hosts.Exchange(sends, receives);
    if (!step.kept) return;
    own_.Keep(inside(step.kept->range));
    window = step.kept->range;
    if (!is_left) std::swap(own_, arriving_);
    own_.Absorb(arriving_);
  }

  const HostLayout& layout_;
  PartialSums own_;
  PartialSums arriving_;
};

/// One rank's part of the allreduce, which is run chunk by chunk.
class SubtreesOfHost {
 public:
  SubtreesOfHost(const Levels& levels, const Reduction& reduction, bool slices, bool halves,
                 std::size_t max_count)
      : levels_(levels),
        reduction_(reduction),
        slices_(slices),
        halves_(halves),
        ranks_(slices ? levels.Counterparts() : levels.Leaders()),
        ends_(EndsInsideHost(levels.layout(), levels.my_host(), reduction)),
        sums_(levels.layout(), reduction, max_count) {}

  void Allreduce(const VectorView& vector, std::size_t count) {
    const std::size_t element_bytes = reduction_.element_bytes();
    const std::vector<std::size_t> offsets = OffsetsOf(count);
    const Range own = Slice(offsets, levels_.local_index());
    HostCollectives* const memory = levels_.memory();
    const std::span<std::byte> sums = sums_.Begin(levels_.my_host(), own.size());
    if (memory != nullptr) {
      memory->ReduceScatterSubtrees(levels_.tag(), vector.At(0), offsets, reduction_, ends_, sums.data());
    } else {
      if (own.size() > 0) std::memcpy(sums.data(), vector.At(0), vector.Bytes(own));
    }
    levels_.Between(ranks_, [&](PeerGroup& hosts) {
      sums_.Allreduce(hosts, VectorView(vector.At(own.begin), element_bytes), own.size(), halves_);
    });
    if (memory == nullptr) return;
    if (slices_) {
      memory->Allgather(levels_.tag(), vector.At(0), InBytes(offsets, element_bytes));
    } else {
      memory->Broadcast(levels_.tag(), vector.At(0), count * element_bytes, 0);
    }
  }

 private:
  /// Returns the offsets of the slices of the host's ranks: equal slices if slices_, otherwise the whole
  /// vector for the leader.
  std::vector<std::size_t> OffsetsOf(std::size_t count) const {
    const auto ranks = levels_.layout().ranks_of(levels_.my_host()).size();
    if (slices_) return EvenOffsets(count, static_cast<int>(ranks));
    std::vector<std::size_t> offsets(ranks + 1, count);
    offsets[0] = 0;
    return offsets;
  }

  const Levels& levels_;
  const Reduction& reduction_;
  const bool slices_;
  const bool halves_;
  const std::vector<int> ranks_;
  const std::vector<int> ends_;
  HostSums sums_;
};

}  // namespace

void AllreduceHierarchicalSubtrees(PeerGroup& group, void* buffer, std::size_t count,
                                   const Reduction& reduction) {
  const Levels levels(group);
  const std::size_t bytes = count * reduction.element_bytes();
  const bool slices = levels.layout().hosts_are_equal() && bytes >= kSliceBytes;
  const std::size_t shares = slices ? levels.layout().ranks_of(levels.my_host()).size() : 1;
  const bool halves = bytes / std::min(shares, kRanksThatShare) > kWholeBytes;

  const std::size_t most = ElementsPerChunk(kSubtreeChunkBytes, reduction.element_bytes()) * shares;
  const std::size_t chunks = NumChunks(count, most);
  const std::size_t per_chunk = (count + chunks - 1) / chunks;
  SubtreesOfHost host(levels, reduction, slices, halves, (per_chunk + shares - 1) / shares);
  const VectorView vector(buffer, reduction.element_bytes());
  for (std::size_t i = 0; i < chunks; ++i) {
    const Range range = Chunk({0, count}, per_chunk, i);
    host.Allreduce(VectorView(vector.At(range.begin), reduction.element_bytes()), range.size());
  }
}

}  // namespace warren::collective
