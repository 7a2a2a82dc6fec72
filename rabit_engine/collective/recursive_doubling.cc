#include "rabit_engine/collective/recursive_doubling.h"

#include <algorithm>
#include <vector>

#include "rabit_engine/base/scratch.h"
#include "rabit_engine/collective/plans.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {
namespace {

// The chunk size of the allreduce, which limits the scratch memory. For longer vectors, other algorithms are
// normally chosen.
constexpr std::size_t kDoublingChunkBytes = 256 << 10;

void Meet(PeerGroup& group, const PlanStep& step, const VectorView& vector, const Reduction& reduction,
          std::byte* scratch) {
  std::vector<Send> sends;
  for (const Part& part : step.given) sends.push_back(vector.SendOf(part.peer, part.range));
  const Range all = step.kept->range;
  const Receive receive{step.kept->peer, scratch, vector.Bytes(all), {}};
  group.Exchange(sends, {&receive, 1});

  std::byte* own = vector.At(all.begin);
  const bool peer_is_left = step.kept->peer < group.index();
  reduction.Combine(own, peer_is_left ? scratch : own, peer_is_left ? own : scratch, all.size());
}

/// The bytes of the slices first, first + 1, ..., where slice 0 follows the last slice. They are two ranges
/// of the buffer; the second is empty unless the slices wrap around.
struct CyclicSlices {
  Range before_wrap;
  Range after_wrap;
};

CyclicSlices SlicesFrom(std::span<const std::size_t> offsets, int first, int count) {
  const int size = static_cast<int>(offsets.size()) - 1;
  first %= size;
  const int end = first + count;
  return {{offsets[first], offsets[std::min(end, size)]}, {offsets[0], offsets[std::max(end - size, 0)]}};
}

/// Returns the peers at distances 1, 2, 4, ... in one direction, +1 or -1.
std::vector<int> PeersAtDoublingDistances(const PeerGroup& group, int direction) {
  std::vector<int> peers;
  for (int distance = 1; distance < group.size(); distance *= 2) {
    peers.push_back((group.index() + direction * distance + group.size()) % group.size());
  }
  return peers;
}

/// The peers at doubling distances below and above this member, one of each per step. Links this member with
/// them.
struct Dissemination {
  explicit Dissemination(PeerGroup& group)
      : below(PeersAtDoublingDistances(group, -1)), above(PeersAtDoublingDistances(group, +1)) {
    std::vector<int> peers = below;
    peers.insert(peers.end(), above.begin(), above.end());
    group.Connect(peers);
  }
  std::size_t steps() const { return below.size(); }

  const std::vector<int> below;
  const std::vector<int> above;
};

void Swap(PeerGroup& group, Send send, Receive receive) {
  group.Exchange({&send, 1}, {&receive, 1});
}

}  // namespace

void AllreduceRecursiveDoubling(PeerGroup& group, void* buffer, std::size_t count,
                                const Reduction& reduction) {
  if (group.size() == 1) return;
  const VectorView vector(buffer, reduction.element_bytes());
  const std::size_t per_chunk = ElementsPerChunk(kDoublingChunkBytes, reduction.element_bytes());
  const Scratch scratch(vector.Bytes({0, std::min(count, per_chunk)}));
  for (std::size_t i = 0; i < NumChunks(count, per_chunk); ++i) {
    const Range range = Chunk({0, count}, per_chunk, i);
    const VectorView chunk(vector.At(range.begin), reduction.element_bytes());
    const std::vector<PlanStep> steps = PlanDoubling(group.index(), group.size(), range.size());
    if (i == 0) group.Connect(PeersOf(steps));
    for (const PlanStep& step : steps) Meet(group, step, chunk, reduction, scratch.data());
  }
}

void AllgatherBruck(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets) {
  const Dissemination peers(group);
  const VectorView bytes(buffer, 1);
  // Before each step a member has `have` slices, beginning with its own.
  for (std::size_t step = 0, have = 1; step < peers.steps(); ++step, have *= 2) {
    const int distance = static_cast<int>(have);
    const int moved = std::min(distance, group.size() - distance);
    const CyclicSlices sent = SlicesFrom(offsets, group.index(), moved);
    const CyclicSlices received = SlicesFrom(offsets, group.index() + distance, moved);
    const int target = peers.below[step];
    const int source = peers.above[step];
    Swap(group, bytes.SendOf(target, sent.before_wrap), bytes.ReceiveInto(source, received.before_wrap));
    Swap(group, bytes.SendOf(target, sent.after_wrap), bytes.ReceiveInto(source, received.after_wrap));
  }
}

void BarrierDissemination(PeerGroup& group) {
  const Dissemination peers(group);
  const std::byte sent{};
  std::byte received{};
  for (std::size_t step = 0; step < peers.steps(); ++step) {
    Swap(group, {peers.above[step], &sent, 1}, {peers.below[step], &received, 1, {}});
  }
}

}  // namespace warren::collective
