// A tree and its predictions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/cuts.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// A leaf, or a split with two children. Trivially copyable, since checkpoints store its bytes.
struct Node {
  std::int32_t parent = -1;  ///< -1: the root
  std::int32_t left = -1;    ///< -1: a leaf
  std::int32_t right = -1;
  std::uint32_t feature = 0;
  /// Rows with a lower bin of the feature go left; if it is 0, no row that has the feature goes left.
  std::uint32_t end_bin = 0;
  float threshold = 0;             ///< the value at which end_bin begins: rows with lower values go left
  std::uint32_t default_left = 0;  ///< 1: rows without the feature also go left
  float weight = 0;   ///< a leaf's value, or that of a split if it were a leaf; includes the learning rate
  float gain = 0;     ///< twice the loss reduction of the split; 0 for leaves
  float hessian = 0;  ///< sum over the rows

  bool is_leaf() const { return left < 0; }
};

struct Tree {
  std::vector<Node> nodes;  ///< the root first, parents before children

  /// Returns the leaf of a row.
  const Node& LeafOf(const BinnedMatrix& matrix, std::size_t row, const Cuts& cuts) const;
};

/// Adds the tree's predictions to the margins of all rows.
void AddPredictions(const Tree& tree, const BinnedMatrix& matrix, const Cuts& cuts, float* margins,
                    Threads& threads);

}  // namespace warren::histgbt
