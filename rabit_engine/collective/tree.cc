#include "rabit_engine/collective/tree.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "rabit_engine/collective/levels.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {
namespace {

// Chunk size for reductions: the size of the pieces in which PeerGroup combines messages. Smaller chunks
// would cost more messages without using the cache better.
constexpr std::size_t kReduceChunkBytes = 128 << 10;

// Returns the chunk size for broadcasts. Each chunk costs a round of waiting, but the larger the chunks are,
// the longer the members at the bottom of the tree wait for the first one.
std::size_t BroadcastChunkBytes(std::size_t bytes, int size) {
  constexpr std::size_t kLeast = 128 << 10;
  constexpr std::size_t kMost = 1 << 20;
  return size == 2 ? bytes : std::clamp(bytes / 8, kLeast, kMost);
}

/// A neighbor in the tree, and the level at which this member and the neighbor meet.
struct Edge {
  int peer = -1;
  int level = 0;
};

/// One member's neighbors in the tree.
struct TreePosition {
  int levels = 0;
  std::vector<Edge> children;  // lowest level first
  std::optional<Edge> parent;
};

int HolderOf(Subtree node, int root) {
  return Contains(node, root) ? root : node.begin;
}

TreePosition FindPosition(int index, int size, int root) {
  TreePosition place;
  place.levels = NumLevels(size);
  for (int level = 0; level < place.levels; ++level) {
    const auto [left, right] = SiblingsAbove(index, level, size);
    if (Size(right) == 0) continue;
    const int peer = HolderOf(Contains(left, index) ? right : left, root);
    if (HolderOf({left.begin, right.end}, root) != index) {
      place.parent = {peer, level};
      break;
    }
    place.children.push_back({peer, level});
  }
  return place;
}

/// The messages of one member, step by step.
class Pipeline {
 public:
  Pipeline(PeerGroup& group, void* buffer, std::size_t count, std::size_t element_bytes, int root,
           std::size_t chunk_bytes)
      : group_(group),
        place_(FindPosition(group.index(), group.size(), root)),
        vector_(buffer, element_bytes),
        whole_{0, count},
        per_chunk_(ElementsPerChunk(chunk_bytes, element_bytes)),
        chunks_(static_cast<std::ptrdiff_t>(NumChunks(count, per_chunk_))) {
    std::vector<int> peers;
    for (const Edge& child : place_.children) peers.push_back(child.peer);
    if (place_.parent) peers.push_back(place_.parent->peer);
    group_.Connect(peers);
  }

  int levels() const { return place_.levels; }
  /// The number of steps of a reduce or a broadcast.
  std::ptrdiff_t steps() const { return chunks_ + levels() - 1; }

  void AddReduceStep(std::ptrdiff_t step, const Reduction& reduction) {
    for (const Edge& child : place_.children) {
      if (const auto chunk = ClimbingAt(child.level, step)) {
        const bool child_is_left = child.peer < group_.index();
        receives_.push_back(vector_.CombineFrom(child.peer, *chunk, reduction, child_is_left));
      }
    }
    if (!place_.parent) return;
    if (const auto chunk = ClimbingAt(place_.parent->level, step)) {
      sends_.push_back(vector_.SendOf(place_.parent->peer, *chunk));
    }
  }

  void AddBroadcastStep(std::ptrdiff_t step) {
    for (const Edge& child : place_.children) {
      if (const auto chunk = DescendingAt(child.level, step)) {
        sends_.push_back(vector_.SendOf(child.peer, *chunk));
      }
    }
    if (!place_.parent) return;
    if (const auto chunk = DescendingAt(place_.parent->level, step)) {
      receives_.push_back(vector_.ReceiveInto(place_.parent->peer, *chunk));
    }
  }

  /// Exchanges the messages added since the last Run.
  void Run() {
    if (!sends_.empty() || !receives_.empty()) group_.Exchange(sends_, receives_);
    sends_.clear();
    receives_.clear();
  }

 private:
  /// The chunk that climbs a level in a step of the reduce, if any: chunk c climbs level k in step c + k.
  std::optional<Range> ClimbingAt(int level, std::ptrdiff_t step) const {
    const std::ptrdiff_t chunk = step - level;
    if (chunk < 0 || chunk >= chunks_) return std::nullopt;
    return Chunk(whole_, per_chunk_, chunk);
  }
  /// Like ClimbingAt, for the broadcast, which begins at the highest level.
  std::optional<Range> DescendingAt(int level, std::ptrdiff_t step) const {
    return ClimbingAt(levels() - 1 - level, step);
  }

  PeerGroup& group_;
  const TreePosition place_;
  const VectorView vector_;
  const Range whole_;
  const std::size_t per_chunk_;
  const std::ptrdiff_t chunks_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

void ReduceTree(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction, int root) {
  Pipeline pipeline(group, buffer, count, reduction.element_bytes(), root, kReduceChunkBytes);
  for (std::ptrdiff_t step = 0; step < pipeline.steps(); ++step) {
    pipeline.AddReduceStep(step, reduction);
    pipeline.Run();
  }
}

void BroadcastTree(PeerGroup& group, void* buffer, std::size_t bytes, int root) {
  Pipeline pipeline(group, buffer, bytes, /*element_bytes=*/1, root,
                    BroadcastChunkBytes(bytes, group.size()));
  for (std::ptrdiff_t step = 0; step < pipeline.steps(); ++step) {
    pipeline.AddBroadcastStep(step);
    pipeline.Run();
  }
}

void AllreduceTree(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction) {
  Pipeline pipeline(group, buffer, count, reduction.element_bytes(), /*root=*/0, kReduceChunkBytes);
  // The root has reduced chunk 0 after `levels` steps.
  const std::ptrdiff_t steps = pipeline.steps() + pipeline.levels();
  for (std::ptrdiff_t step = 0; step < steps; ++step) {
    pipeline.AddReduceStep(step, reduction);
    pipeline.AddBroadcastStep(step - pipeline.levels());
    pipeline.Run();
  }
}

void BarrierTree(PeerGroup& group) {
  unsigned char token = 0;
  AllreduceTree(group, &token, 1, Reduction::Typed(DataType::kUChar, ReduceOp::kBitOr));
}

}  // namespace warren::collective
