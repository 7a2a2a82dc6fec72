// Grows trees level by level: the part that CPU and GPU share.
#pragma once

#include "examples/histgbt/backend.h"
#include "examples/histgbt/cuts.h"
#include "examples/histgbt/split.h"
#include "examples/histgbt/tree.h"

namespace warren::histgbt {

struct TreeParameters {
  int max_depth = 6;  ///< at least 1
  double eta = 0.3;   ///< learning rate
  SplitParameters split;
};

/// Grows the next tree of the backend's current round, and adds its values to the backend's margins. A
/// collective call; all workers get the same tree.
Tree GrowTree(Backend& backend, const Cuts& cuts, int class_index, const TreeParameters& parameters);

}  // namespace warren::histgbt
