#include "rabit_engine/reduce/order.h"

#include <algorithm>
#include <cstdint>

namespace warren {
namespace {

/// Returns the end of the largest node that begins at `begin` and does not reach beyond `limit`. Nodes are
/// the aligned power-of-two ranges, cut off at the world size; a single rank is always a node.
int EndOfLargestNode(int begin, int limit, int world_size) {
  int end = begin + 1;
  for (std::int64_t width = 2; begin % width == 0; width *= 2) {
    const std::int64_t wider = std::min<std::int64_t>(begin + width, world_size);
    if (wider > limit) break;
    end = static_cast<int>(wider);
    if (end == world_size) break;  // all wider nodes are the same range
  }
  return end;
}

}  // namespace

bool IsSubtree(int begin, int end, int world_size) {
  if (begin < 0 || begin >= end || end > world_size) return false;
  return EndOfLargestNode(begin, end, world_size) == end;
}

std::vector<Subtree> Decompose(int begin, int end, int world_size) {
  // Nodes are nested or disjoint, so taking the largest one at each step yields the fewest.
  std::vector<Subtree> subtrees;
  while (begin < end) {
    const int next = EndOfLargestNode(begin, end, world_size);
    subtrees.push_back({begin, next});
    begin = next;
  }
  return subtrees;
}

}  // namespace warren
