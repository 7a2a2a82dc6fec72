// The order of every reduction of the native engine (unless WARREN_REPRODUCIBLE=0): a binary tree over the
// ranks. Ranks 0 and 1 are combined, ranks 2 and 3, and so on; then the pairs {0,1} and {2,3}; then groups of
// four; a subtree without a right-hand sibling is passed up unchanged. The order depends only on the ranks,
// never on the algorithm, the transport, the hosts or the chunk size; therefore all algorithms produce the
// same bits. The rounding error of a sum grows with log2 of the world size (pairwise summation; Higham, "The
// accuracy of floating point summation", 1993).
//
// Pure functions over integers.
#pragma once

#include <vector>

namespace warren {

/// Ranks [begin, end) whose values are combined under one node of the tree.
struct Subtree {
  int begin = 0;
  int end = 0;
  friend bool operator==(const Subtree&, const Subtree&) = default;
};

/// Whether [begin, end) are exactly the ranks under one node of the tree over `world_size` ranks.
bool IsSubtree(int begin, int end, int world_size);

/// Returns the fewest subtrees that cover the ranks [begin, end), from left to right. A rank that holds the
/// contributions of these ranks can already combine those of each subtree. There are at most 2
/// log2(world_size) subtrees, and one if the range is a subtree.
std::vector<Subtree> Decompose(int begin, int end, int world_size);

}  // namespace warren
