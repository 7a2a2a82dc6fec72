// One tree, and what it says of a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/cuts.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// A node: a leaf, or a question whose answer leads to one of two children. Trivially copyable: checkpoints
/// hold it as it is.
struct Node {
  std::int32_t parent = -1;  ///< -1: the root
  std::int32_t left = -1;    ///< -1: a leaf
  std::int32_t right = -1;
  std::uint32_t feature = 0;
  std::uint32_t end_bin = 0;       ///< rows whose value is in a bin below this one go left; 0: none of them
  float threshold = 0;             ///< the same for values: those below go left
  std::uint32_t default_left = 0;  ///< 1: rows that lack the feature go left, too
  float weight = 0;                ///< a leaf's value, or what it would be here, learning rate included
  float gain = 0;                  ///< what the question takes off the loss, times two; 0 of leaves
  float hessian = 0;               ///< sum over the rows

  bool is_leaf() const { return left < 0; }
};

struct Tree {
  std::vector<Node> nodes;  ///< parents before children; the root first

  /// The leaf that a row comes to.
  const Node& LeafOf(const BinnedMatrix& matrix, std::size_t row, const Cuts& cuts) const;
};

/// Adds the tree's values to the margins of all rows.
void AddPredictions(const Tree& tree, const BinnedMatrix& matrix, const Cuts& cuts, float* margins,
                    Threads& threads);

}  // namespace warren::histgbt
