#include "tracker/topology.h"

#include <algorithm>
#include <stdexcept>

namespace warren::tracker {
namespace {

/// Appends the nodes of the heap-shaped subtree at `node` to `order`, in the order of the traversal
/// (topology.h) or, if `backwards` is set, exactly in reverse.
void Walk(int node, int size, bool backwards, std::vector<int>& order) {
  const int left = 2 * node + 1;
  const int right = 2 * node + 2;
  // Forwards, the order is: the node, the left subtree, the right subtree in reverse. An only child is the
  // last one, so its subtree is traversed in reverse.
  const bool has_right = right < size;
  if (!backwards) order.push_back(node);
  if (backwards && has_right) Walk(right, size, false, order);
  if (left < size) Walk(left, size, has_right == backwards, order);
  if (!backwards && has_right) Walk(right, size, true, order);
  if (backwards) order.push_back(node);
}

}  // namespace

Topology::Topology(int size) {
  if (size < 1) throw std::invalid_argument("a world needs at least one rank");
  std::vector<int> order;
  order.reserve(size);
  Walk(0, size, false, order);
  std::vector<int> rank_of(size);
  for (int rank = 0; rank < size; ++rank) rank_of[order[rank]] = rank;

  parent_.assign(size, -1);
  tree_.resize(size);
  neighbors_.resize(size);
  for (int node = 1; node < size; ++node) parent_[rank_of[node]] = rank_of[(node - 1) / 2];
  for (int node = 0; node < size; ++node) {
    const int rank = rank_of[node];
    if (parent_[rank] >= 0) tree_[rank].push_back(parent_[rank]);
    for (const int child : {2 * node + 1, 2 * node + 2}) {
      if (child < size) tree_[rank].push_back(rank_of[child]);
    }
  }
  for (int rank = 0; rank < size; ++rank) {
    std::vector<int>& all = neighbors_[rank];
    all = tree_[rank];
    for (const int peer : {ring_prev(rank), ring_next(rank)}) {
      if (peer >= 0) all.push_back(peer);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }

  level_.assign(size, -1);
  for (int rank = 0; rank < size; ++rank) {
    const auto taken = [&](int level) {
      return std::any_of(neighbors_[rank].begin(), neighbors_[rank].end(),
                         [&](int peer) { return level_[peer] == level; });
    };
    int level = 0;
    while (taken(level)) ++level;
    level_[rank] = level;
  }
}

int Topology::ring_prev(int rank) const {
  return size() == 1 ? -1 : (rank + size() - 1) % size();
}

int Topology::ring_next(int rank) const {
  return size() == 1 ? -1 : (rank + 1) % size();
}

}  // namespace warren::tracker
