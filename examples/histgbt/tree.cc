#include "examples/histgbt/tree.h"

namespace warren::histgbt {

const Node& Tree::LeafOf(const BinnedMatrix& matrix, std::size_t row, const Cuts& cuts) const {
  const Node* node = nodes.data();
  while (!node->is_leaf()) {
    const std::uint32_t bin = matrix.Bin(row, node->feature, cuts);
    const bool left = bin == cuts.Bins(node->feature) ? node->default_left != 0 : bin < node->end_bin;
    node = &nodes[static_cast<std::size_t>(left ? node->left : node->right)];
  }
  return *node;
}

void AddPredictions(const Tree& tree, const BinnedMatrix& matrix, const Cuts& cuts, float* margins,
                    Threads& threads) {
  threads.ForRanges(matrix.rows, 1024, [&](std::size_t begin, std::size_t end, int /*thread*/) {
    for (std::size_t row = begin; row < end; ++row) margins[row] += tree.LeafOf(matrix, row, cuts).weight;
  });
}

}  // namespace warren::histgbt
