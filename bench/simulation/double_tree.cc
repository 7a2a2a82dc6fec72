#include "bench/simulation/double_tree.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "rabit_engine/collective/slices.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::simulation {
namespace {

using collective::Chunk;
using collective::Range;

/// The place of one member in one tree.
struct Place {
  int parent = -1;
  std::vector<int> children;
  int depth = 0;
};

/// The number in [begin, end) with the most trailing zero bits. It is the root of a tree over the range in
/// which every number lies between its children and odd numbers are leaves.
int RootOf(int begin, int end) {
  for (int step = static_cast<int>(std::bit_floor(static_cast<unsigned>(end)));; step /= 2) {
    const int multiple = (begin + step - 1) / step * step;
    if (multiple < end) return multiple;
  }
}

/// The place of `role` in the tree over the roles [0, size): role 0 at the top, and below it the in-order
/// binary tree of RootOf over the other roles.
Place PlaceOf(int role, int size) {
  Place place;
  int begin = 1;
  int end = size;
  while (role != 0) {
    const int root = RootOf(begin, end);
    place.parent = place.depth == 0 ? 0 : place.parent;
    ++place.depth;
    if (root == role) break;
    place.parent = root;
    (role < root ? end : begin) = role < root ? root : root + 1;
  }
  if (role == 0) {
    if (size > 1) place.children.push_back(RootOf(1, size));
    return place;
  }
  if (begin < role) place.children.push_back(RootOf(begin, role));
  if (role + 1 < end) place.children.push_back(RootOf(role + 1, end));
  return place;
}

/// One tree and its half of the vector.
class Tree {
 public:
  /// The member's role is its index plus `shift`, modulo `size`.
  Tree(int index, int size, int shift, Range half, std::size_t per_chunk)
      : place_(PlaceOf((index + shift) % size, size)),
        // Role 1 is the leaf of the leftmost path, which is one of the longest.
        levels_(PlaceOf(1, size).depth),
        half_(half),
        per_chunk_(per_chunk),
        chunks_(static_cast<int>(collective::NumChunks(half.size(), per_chunk))) {
    const auto member = [&](int role) { return (role - shift + size) % size; };
    if (place_.parent >= 0) place_.parent = member(place_.parent);
    for (int& child : place_.children) child = member(child);
  }

  int steps() const { return 2 * levels_ + chunks_ - 1; }
  void AddPeers(std::vector<int>& peers) const {
    if (place_.parent >= 0) peers.push_back(place_.parent);
    peers.insert(peers.end(), place_.children.begin(), place_.children.end());
  }

  /// Chunk c climbs to depth d in step c + levels - d - 1, and descends from there in step c + levels + d.
  void AddStep(int step, const collective::VectorView& vector, const Reduction& reduction,
               std::vector<Send>& sends, std::vector<Receive>& receives) const {
    const auto chunk = [&](int number) { return Chunk(half_, per_chunk_, static_cast<std::size_t>(number)); };
    const auto exists = [&](int number) { return number >= 0 && number < chunks_; };
    const int from_below = step - (levels_ - place_.depth - 1);
    const int to_below = step - (levels_ + place_.depth);
    for (const int child : place_.children) {
      if (exists(from_below)) {
        receives.push_back(vector.CombineFrom(child, chunk(from_below), reduction, /*peer_is_left=*/false));
      }
      if (exists(to_below)) sends.push_back(vector.SendOf(child, chunk(to_below)));
    }
    if (place_.parent < 0) return;
    if (exists(from_below - 1)) sends.push_back(vector.SendOf(place_.parent, chunk(from_below - 1)));
    if (exists(to_below + 1)) receives.push_back(vector.ReceiveInto(place_.parent, chunk(to_below + 1)));
  }

 private:
  Place place_;
  int levels_;
  Range half_;
  std::size_t per_chunk_;
  int chunks_;
};

}  // namespace

void AllreduceDoubleTree(PeerGroup& group, void* buffer, std::size_t count, const Reduction& reduction,
                         std::size_t chunk_bytes) {
  if (group.size() == 1) return;
  const std::size_t per_chunk = collective::ElementsPerChunk(chunk_bytes, reduction.element_bytes());
  const Tree trees[] = {Tree(group.index(), group.size(), 0, {0, count / 2}, per_chunk),
                        Tree(group.index(), group.size(), 1, {count / 2, count}, per_chunk)};
  std::vector<int> peers;
  for (const Tree& tree : trees) tree.AddPeers(peers);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  group.Connect(peers);

  const collective::VectorView vector(buffer, reduction.element_bytes());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int step = 0; step < std::max(trees[0].steps(), trees[1].steps()); ++step) {
    sends.clear();
    receives.clear();
    for (const Tree& tree : trees) tree.AddStep(step, vector, reduction, sends, receives);
    if (!sends.empty() || !receives.empty()) group.Exchange(sends, receives);
  }
}

}  // namespace warren::simulation
