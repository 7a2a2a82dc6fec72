// The steps of recursive doubling and halving-doubling for one member: the peers with which it exchanges data
// at each level of the order (levels.h), and the parts of the vector that are exchanged. For each part, the
// algorithms send one sum (recursive_doubling.cc, halving_doubling.cc) or several partial sums
// (hierarchical_subtrees.cc).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "rabit_engine/collective/levels.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {

/// A range of the vector that is sent to or received from a peer.
struct Part {
  int peer = -1;
  Range range;
};

/// One level, at which two nodes meet. A member sends the `given` parts, and combines the part that it keeps,
/// if any, with the peer's values, which are the sum over the whole other node.
struct PlanStep {
  Siblings nodes;
  std::vector<Part> given;
  std::optional<Part> kept;
};

/// Returns the steps of recursive doubling: every member sends and keeps the whole vector in each step.
std::vector<PlanStep> PlanDoubling(int index, int size, std::size_t count);

/// Returns the steps of halving-doubling's reduce-scatter: when nodes of equal size meet, every member keeps
/// one half of its window and gives the other half away; the members of a smaller right node give away all
/// they hold, which is their last step.
std::vector<PlanStep> PlanHalving(int index, int size, std::size_t count);

/// Runs the steps in reverse: each member receives the results for the parts that it gave away. Called when
/// each member has the result for the part that it kept last.
void AllgatherBack(PeerGroup& group, std::span<const PlanStep> steps, const VectorView& vector);

/// Returns all peers in the steps, each once.
std::vector<int> PeersOf(std::span<const PlanStep> steps);

}  // namespace warren::collective
