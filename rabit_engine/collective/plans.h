// The steps of recursive doubling and of halving-doubling as one member takes them: with whom it meets in
// each level of the order (levels.h), and which part of the vector moves. What moves is the algorithms' own:
// sums (recursive_doubling.cc, halving_doubling.cc) or several partial sums (hierarchical_subtrees.cc).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "rabit_engine/collective/levels.h"
#include "rabit_engine/collective/vector_view.h"

namespace warren::collective {

/// A range of the vector that a peer has to do with.
struct Part {
  int peer = -1;
  Range range;
};

/// One level, in which two nodes meet. A member sends what it gives, and combines what it keeps with the
/// peer's values, which are those of the whole other node.
struct Step {
  Siblings nodes;
  std::vector<Part> given;
  std::optional<Part> kept;
};

/// Recursive doubling: all of the vector moves in each step, and every member keeps it.
std::vector<Step> PlanDoubling(int index, int size, std::size_t count);

/// Halving-doubling, the reduce-scatter: where equal nodes meet, every member keeps one half of its window
/// and gives the other; the members of a smaller right node give all they hold, and are done.
std::vector<Step> PlanHalving(int index, int size, std::size_t count);

/// The same way back, when each member has the result of what it kept: gets back what it gave.
void AllgatherBack(PeerGroup& group, std::span<const Step> steps, const VectorView& vector);

/// All peers in the steps, each once.
std::vector<int> PeersOf(std::span<const Step> steps);

}  // namespace warren::collective
