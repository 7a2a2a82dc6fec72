#include "rabit_engine/collective/recursive_doubling.h"

#include <algorithm>
#include <vector>

#include "rabit_engine/collective/levels.h"
#include "rabit_engine/collective/scratch.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {
namespace {

// Bounds the scratch. Other algorithms are chosen long before messages are this long.
constexpr std::size_t kChunkBytes = 256 << 10;

/// What a member does in one level: it sends its sum to some members of the sibling and gets the sibling's.
struct Meeting {
  int source = -1;
  bool source_is_left = false;
  std::vector<int> targets;
};

Meeting MeetInLeftNode(int index, Subtree left, Subtree right) {
  const int place = index - left.begin;
  Meeting meeting{right.begin + place % Size(right), false, {}};
  if (place < Size(right)) meeting.targets.push_back(right.begin + place);
  return meeting;
}

Meeting MeetInRightNode(int index, Subtree left, Subtree right) {
  const int place = index - right.begin;
  Meeting meeting{left.begin + place, true, {}};
  for (int target = left.begin + place; target < left.end; target += Size(right)) {
    meeting.targets.push_back(target);
  }
  return meeting;
}

std::vector<Meeting> PlanMeetings(int index, int size) {
  std::vector<Meeting> meetings;
  for (int level = 0; level < NumLevels(size); ++level) {
    const auto [left, right] = SiblingsAbove(index, level, size);
    if (Size(right) == 0) continue;
    meetings.push_back(Contains(left, index) ? MeetInLeftNode(index, left, right)
                                             : MeetInRightNode(index, left, right));
  }
  return meetings;
}

std::vector<int> PeersOf(const std::vector<Meeting>& meetings) {
  std::vector<int> peers;
  for (const Meeting& meeting : meetings) {
    peers.push_back(meeting.source);
    for (const int target : meeting.targets) {
      if (target != meeting.source) peers.push_back(target);
    }
  }
  return peers;
}

void Meet(PeerGroup& group, const Meeting& meeting, const VectorView& vector, Range range,
          const Reduction& reduction, std::byte* scratch) {
  std::vector<Send> sends;
  for (const int target : meeting.targets) sends.push_back(vector.SendOf(target, range));
  const Receive receive{meeting.source, scratch, vector.Bytes(range), {}};
  group.Exchange(sends, {&receive, 1});

  std::byte* own = vector.At(range.begin);
  const void* left = meeting.source_is_left ? scratch : own;
  const void* right = meeting.source_is_left ? own : scratch;
  reduction.Combine(own, left, right, range.size());
}

/// Slices first, first + 1, ... where the slice after the last is the first: two ranges of the buffer, of
/// which the second is empty unless they wrap.
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

/// Peers at distances 1, 2, 4, ... in one direction, +1 or -1.
std::vector<int> PeersAtDoublingDistances(const PeerGroup& group, int direction) {
  std::vector<int> peers;
  for (int distance = 1; distance < group.size(); distance *= 2) {
    peers.push_back((group.index() + direction * distance + group.size()) % group.size());
  }
  return peers;
}

/// The peers below and above, as the steps of the cyclic algorithms need them.
struct Dissemination {
  explicit Dissemination(PeerGroup& group)
      : below(PeersAtDoublingDistances(group, -1)), above(PeersAtDoublingDistances(group, +1)) {
    std::vector<int> peers = below;
    peers.insert(peers.end(), above.begin(), above.end());
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
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
  const std::vector<Meeting> meetings = PlanMeetings(group.index(), group.size());
  group.Connect(PeersOf(meetings));
  if (meetings.empty()) return;

  const VectorView vector(buffer, reduction.element_bytes());
  const std::size_t per_chunk = ElementsPerChunk(kChunkBytes, reduction.element_bytes());
  const Scratch scratch(vector.Bytes({0, std::min(count, per_chunk)}));
  for (std::size_t i = 0; i < NumChunks(count, per_chunk); ++i) {
    const Range range = Chunk({0, count}, per_chunk, i);
    for (const Meeting& meeting : meetings) Meet(group, meeting, vector, range, reduction, scratch.data());
  }
}

void AllgatherBruck(PeerGroup& group, void* buffer, std::span<const std::size_t> offsets) {
  const Dissemination peers(group);
  const VectorView bytes(buffer, 1);
  // Before each step a member has `have` slices, its own first.
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
