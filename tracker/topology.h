// The links between ranks: a tree for small messages, and a ring that has edges in common with it. Does no
// I/O.
#pragma once

#include <vector>

namespace warren::tracker {

/// The links of a world of `size` ranks. Rank 0 is the root of a binary tree of depth log2(size); ring
/// neighbors are rank-1 and rank+1 modulo size. Ranks are numbered by a depth-first traversal in which the
/// last subtree of every node is traversed in reverse, so that the traversal returns towards the root and
/// more than half of the ring edges are tree edges. The tree and the rank numbers equal those of rabit's
/// tracker (dmlc-core), so that a job can use different trackers over time.
class Topology {
 public:
  /// Throws std::invalid_argument if `size` is below 1. Takes linear time.
  explicit Topology(int size);

  int size() const { return static_cast<int>(parent_.size()); }
  int parent(int rank) const { return parent_[rank]; }                            ///< -1 for rank 0
  const std::vector<int>& tree_neighbors(int rank) const { return tree_[rank]; }  ///< parent first
  int ring_prev(int rank) const;  ///< -1 if the world size is 1
  int ring_next(int rank) const;  ///< -1 if the world size is 1
  /// All ranks that `rank` has a link with, in tree and ring, ascending and unique: at most five.
  const std::vector<int>& neighbors(int rank) const { return neighbors_[rank]; }

  /// Of two neighbors, the one with the lower level listens and the other one connects. Neighbors never have
  /// the same level, and there are at most six levels (greedy coloring: a node with d neighbors needs at most
  /// d + 1 colors). So the longest chain of workers that wait for each other's ports does not grow with the
  /// world size.
  int level(int rank) const { return level_[rank]; }
  bool connects(int rank, int peer) const { return level_[rank] > level_[peer]; }

 private:
  std::vector<int> parent_;
  std::vector<std::vector<int>> tree_;
  std::vector<std::vector<int>> neighbors_;
  std::vector<int> level_;
};

}  // namespace warren::tracker
