// Who links to whom: the tree that small messages travel and the ring that shares edges with it. Pure.
#pragma once

#include <vector>

namespace warren::tracker {

/// The links of a world of `size` ranks. Rank 0 is the root of a binary tree of depth log2(size); ring
/// neighbours are rank-1 and rank+1 modulo size. The ranks are laid along a walk of the tree in which the
/// last subtree of every node is walked backwards, so that the walk returns towards the root and most ring
/// edges are tree edges. Shape and labels are rabit's (dmlc-core's tracker), so a job may mix trackers over
/// time.
class Topology {
 public:
  /// `size` >= 1. Cost is linear in it.
  explicit Topology(int size);

  int size() const { return static_cast<int>(parent_.size()); }
  int parent(int rank) const { return parent_[rank]; }                            ///< -1 at rank 0
  const std::vector<int>& tree_neighbors(int rank) const { return tree_[rank]; }  ///< parent first
  int ring_prev(int rank) const;                                                  ///< -1 in a world of one
  int ring_next(int rank) const;                                                  ///< -1 in a world of one
  /// Everyone `rank` has a link with, tree and ring, ascending, each once: at most five.
  const std::vector<int>& neighbors(int rank) const { return neighbors_[rank]; }

  /// Of two neighbours the one with the lower level listens and the other connects. Neighbours never share a
  /// level and there are at most six, so the longest chain of workers waiting for each other's port does not
  /// grow with the world (greedy colouring: a node of degree d needs at most d + 1 colours).
  int level(int rank) const { return level_[rank]; }
  bool connects(int rank, int peer) const { return level_[rank] > level_[peer]; }

 private:
  std::vector<int> parent_;
  std::vector<std::vector<int>> tree_;
  std::vector<std::vector<int>> neighbors_;
  std::vector<int> level_;
};

}  // namespace warren::tracker
