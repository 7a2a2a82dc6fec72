#include "rabit_engine/collective/pairwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "rabit_engine/base/scratch.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {
namespace {

// The total size of the pieces received in one step: half of a typical L2 cache of 2 MiB, so that the pieces
// are still cached when they are combined.
constexpr std::size_t kScratchBytes = 1 << 20;

/// The reduce-scatter of one chunk of every slice.
class SliceCombiner {
 public:
  SliceCombiner(PeerGroup& group, const VectorView& vector, const Reduction& reduction, std::size_t longest)
      : group_(group),
        vector_(vector),
        reduction_(reduction),
        others_(group.Others()),
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
  std::vector<const void*> inputs_;  // one per member
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

void ReduceScatterPairwise(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                           const Reduction& reduction) {
  if (group.size() == 1) return;
  group.Connect(group.Others());
  const std::size_t longest = LongestSlice(offsets);
  SliceCombiner combiner(group, {buffer, reduction.element_bytes()}, reduction, longest);
  const std::size_t chunks = NumChunks(longest, combiner.per_chunk());
  for (std::size_t i = 0; i < chunks; ++i) combiner.Run(offsets, i);
}

void AllgatherPairwise(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets) {
  const std::vector<int> others = group.Others();
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

void AllToAllPairwise(PeerGroup& group, const void* from, std::span<const std::size_t> sent, void* to,
                      std::span<const std::size_t> received) {
  const std::vector<int> others = group.Others();
  group.Connect(others);
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (const int peer : others) {
    const Range out = Slice(sent, peer);
    const Range in = Slice(received, peer);
    sends.push_back({peer, source + out.begin, out.size()});
    receives.push_back({peer, target + in.begin, in.size(), {}});
  }
  const Range own = Slice(sent, group.index());
  if (own.size() > 0) std::memcpy(target + received[group.index()], source + own.begin, own.size());
  group.Exchange(sends, receives);
}

void AllreducePairwise(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  const std::vector<std::size_t> offsets = EvenOffsets(count, group.size());
  ReduceScatterPairwise(group, buffer, offsets, reduction);
  AllgatherPairwise(group, buffer, InBytes(offsets, reduction.element_bytes()));
}

}  // namespace warren::collective
