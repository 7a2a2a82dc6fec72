// The steps of recursive doubling and halving-doubling for one member: the peers it meets at each level of
// the order (levels.h), and the parts of the vector that move. For these parts, the algorithms send either
// sums (recursive_doubling.cc, halving_doubling.cc) or several partial sums (hierarchical_subtrees.cc).
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

/// One level, at which two nodes meet. A member sends the `given` parts, and combines the part it keeps with
/// the peer's values, which represent the whole other node.
struct PlanStep {
  Siblings nodes;
  std::vector<Part> given;
  std::optional<Part> kept;
};

/// Recursive doubling: the whole vector moves in each step, and every member keeps it.
std::vector<PlanStep> PlanDoubling(int index, int size, std::size_t count);

/// The reduce-scatter of halving-doubling: where equal nodes meet, every member keeps one half of its window
/// and gives the other half away; the members of a smaller right node give all they hold, and are finished.
std::vector<PlanStep> PlanHalving(int index, int size, std::size_t count);

/// Runs the steps in reverse once each member has the result for the part it kept, so that each member
/// receives the results for the parts it gave away.
void AllgatherBack(PeerGroup& group, std::span<const PlanStep> steps, const VectorView& vector);

/// All peers in the steps, each once.
std::vector<int> PeersOf(std::span<const PlanStep> steps);

}  // namespace warren::collective
