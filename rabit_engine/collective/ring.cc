#include "rabit_engine/collective/ring.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "rabit_engine/collective/partial_sums.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {
namespace {

// Chunks should not be small, because each step costs one message latency, but partial sums should stay in
// the cache until they are sent.
constexpr std::size_t kRingChunkBytes = 128 << 10;

/// A member's place in the ring.
class Ring {
 public:
  explicit Ring(PeerGroup& group) : group_(group), next_(MemberAt(1)), previous_(MemberAt(-1)) {
    group.Connect(std::array{next_, previous_});
  }

  int index() const { return group_.index(); }
  int size() const { return group_.size(); }
  /// Returns the member at this distance along the ring. `distance` is at least -size().
  int MemberAt(int distance) const { return (index() + distance + size()) % size(); }

  int next() const { return next_; }
  int previous() const { return previous_; }

  void Pass(std::span<const std::byte> sent, std::span<std::byte> received) const {
    const Send send{next_, sent.data(), sent.size()};
    const Receive receive{previous_, received.data(), received.size(), {}};
    group_.Exchange({&send, 1}, {&receive, 1});
  }

 private:
  PeerGroup& group_;
  const int next_;
  const int previous_;
};

std::span<std::byte> BytesOf(const VectorView& vector, Range range) {
  return {vector.At(range.begin), vector.Bytes(range)};
}

/// The reduce-scatter of one chunk of every slice.
class TravellingSums {
 public:
  TravellingSums(const Ring& ring, const VectorView& vector, const Reduction& reduction,
                 std::size_t per_chunk)
      : ring_(ring),
        vector_(vector),
        leaving_(reduction, ring.size(), per_chunk),
        arriving_(reduction, ring.size(), per_chunk) {}

  /// chunks[j] is the chunk of slice j.
  void Run(std::span<const Range> chunks) {
    std::span<const std::byte> sent = BytesOf(vector_, chunks[ring_.MemberAt(-1)]);
    for (int passed = 1; passed < ring_.size(); ++passed) {
      // The slice that arrives has passed `passed` members. It started at the member after its destination.
      const int slice = ring_.MemberAt(-1 - passed);
      const int first = (slice + 1) % ring_.size();
      arriving_.Hold(first, passed, chunks[slice].size());
      ring_.Pass(sent, arriving_.values());
      arriving_.Absorb({ring_.index(), ring_.index() + 1}, vector_.At(chunks[slice].begin));
      std::swap(leaving_, arriving_);
      sent = leaving_.values();
    }
    leaving_.Total(vector_.At(chunks[ring_.index()].begin));
  }

 private:
  const Ring& ring_;
  const VectorView vector_;
  PartialSums leaving_;
  PartialSums arriving_;
};

}  // namespace

void ReduceScatterRing(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets,
                       const Reduction& reduction) {
  if (group.size() == 1) return;
  const Ring ring(group);
  const std::size_t longest = LongestSlice(offsets);
  const std::size_t per_chunk = ElementsPerChunk(kRingChunkBytes, reduction.element_bytes());
  TravellingSums sums(ring, {buffer, reduction.element_bytes()}, reduction, std::min(longest, per_chunk));
  std::vector<Range> chunks(group.size());
  for (std::size_t i = 0; i < NumChunks(longest, per_chunk); ++i) {
    for (int slice = 0; slice < group.size(); ++slice) {
      chunks[slice] = Chunk(Slice(offsets, slice), per_chunk, i);
    }
    sums.Run(chunks);
  }
}

void AllgatherRing(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets) {
  if (group.size() == 1) return;
  const Ring ring(group);
  const VectorView bytes(buffer, 1);
  for (int step = 0; step < group.size() - 1; ++step) {
    const Range sent = Slice(offsets, ring.MemberAt(-step));
    const Range received = Slice(offsets, ring.MemberAt(-1 - step));
    ring.Pass(BytesOf(bytes, sent), BytesOf(bytes, received));
  }
}

void BroadcastRing(PeerGroup& group, void* buffer, std::size_t bytes, int root) {
  if (group.size() == 1) return;
  const Ring ring(group);
  const VectorView vector(buffer, 1);
  const bool is_last = ring.next() == root;
  const bool is_root = ring.index() == root;
  const std::size_t chunks = NumChunks(bytes, kRingChunkBytes);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  // In each step, a member receives a chunk while it sends the previous one.
  for (std::size_t step = 0; step <= chunks; ++step) {
    sends.clear();
    receives.clear();
    if (!is_root && step < chunks) {
      receives.push_back(vector.ReceiveInto(ring.previous(), Chunk({0, bytes}, kRingChunkBytes, step)));
    }
    if (!is_last && step > 0) {
      sends.push_back(vector.SendOf(ring.next(), Chunk({0, bytes}, kRingChunkBytes, step - 1)));
    }
    group.Exchange(sends, receives);
  }
}

void AllreduceRing(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  const std::vector<std::size_t> offsets = EvenOffsets(count, group.size());
  ReduceScatterRing(group, buffer, offsets, reduction);
  AllgatherRing(group, buffer, InBytes(offsets, reduction.element_bytes()));
}

}  // namespace warren::collective
