// Grows trees level by level: what is the same on CPU and GPU.
#pragma once

#include "examples/histgbt/backend.h"
#include "examples/histgbt/cuts.h"
#include "examples/histgbt/split.h"
#include "examples/histgbt/tree.h"

namespace warren::histgbt {

struct TreeParameters {
  int max_depth = 6;  ///< at least 1
  double eta = 0.3;   ///< the learning rate
  SplitParameters split;
};

/// The next tree of the round that the backend has begun, whose values have been added to its margins. A
/// collective call; all workers get the same tree.
Tree GrowTree(Backend& backend, const Cuts& cuts, int class_index, const TreeParameters& parameters);

}  // namespace warren::histgbt
