#include "rabit_engine/collective/pairwise.h"

#include <algorithm>
#include <vector>

#include "rabit_engine/collective/scratch.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {
namespace {

// The pieces of all peers together: half of a usual L2 cache, so that they are still there when combined.
constexpr std::size_t kScratchBytes = 1 << 20;

/// All other members, from the next one on: so that not all send to the same one first.
std::vector<int> OthersOf(const PeerGroup& group) {
  std::vector<int> others;
  for (int i = 1; i < group.size(); ++i) others.push_back((group.index() + i) % group.size());
  return others;
}

/// The reduce-scatter of one chunk of every slice.
class SliceCombiner {
 public:
  SliceCombiner(PeerGroup& group, const VectorView& vector, const Reduction& reduction, std::size_t longest)
      : group_(group),
        vector_(vector),
        reduction_(reduction),
        others_(OthersOf(group)),
        per_chunk_(ElementsPerChunk(kScratchBytes / others_.size(), reduction.element_bytes())),
        slot_bytes_(vector.Bytes({0, std::min(per_chunk_, longest)})),
        scratch_(slot_bytes_ * others_.size()),
        inputs_(group.size()) {}

  std::size_t per_chunk() const { return per_chunk_; }

  void Run(std::span<const std::size_t> offsets, std::size_t index) {
    const Range own = Chunk(Slice(offsets, group_.index()), per_chunk_, index);
    sends_.clear();
    receives_.clear();
    std::byte* slot = scratch_.data();
    for (const int peer : others_) {
      sends_.push_back(vector_.SendOf(peer, Chunk(Slice(offsets, peer), per_chunk_, index)));
      receives_.push_back({peer, slot, vector_.Bytes(own), {}});
      inputs_[peer] = slot;
      slot += slot_bytes_;
    }
    inputs_[group_.index()] = vector_.At(own.begin);
    group_.Exchange(sends_, receives_);
    reduction_.CombineAll(vector_.At(own.begin), inputs_, own.size());
  }

 private:
  PeerGroup& group_;
  const VectorView vector_;
  const Reduction& reduction_;
  const std::vector<int> others_;
  const std::size_t per_chunk_;
  const std::size_t slot_bytes_;
  const Scratch scratch_;
  std::vector<const void*> inputs_;  // one of each member
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

void ReduceScatterPairwise(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                           const Reduction& reduction) {
  if (group.size() == 1) return;
  group.Connect(OthersOf(group));
  const std::size_t longest = LongestSlice(offsets);
  SliceCombiner combiner(group, {buffer, reduction.element_bytes()}, reduction, longest);
  const std::size_t chunks = NumChunks(longest, combiner.per_chunk());
  for (std::size_t i = 0; i < chunks; ++i) combiner.Run(offsets, i);
}

void AllgatherPairwise(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets) {
  const std::vector<int> others = OthersOf(group);
  group.Connect(others);
  const VectorView bytes(buffer, 1);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (const int peer : others) {
    sends.push_back(bytes.SendOf(peer, Slice(offsets, group.index())));
    receives.push_back(bytes.ReceiveInto(peer, Slice(offsets, peer)));
  }
  group.Exchange(sends, receives);
}

void AllreducePairwise(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  const std::vector<std::size_t> offsets = EvenOffsets(count, group.size());
  ReduceScatterPairwise(group, buffer, offsets, reduction);
  AllgatherPairwise(group, buffer, InBytes(offsets, reduction.element_bytes()));
}

}  // namespace warren::collective
