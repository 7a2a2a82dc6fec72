// Gradients of many rows, in loops without data-dependent branches, which compilers vectorize.
#pragma once

#include <cstddef>

#include "examples/histgbt/arithmetic.h"
#include "examples/histgbt/backend.h"
#include "examples/histgbt/objective.h"

namespace warren::histgbt {

/// Some rows of the training data.
struct RowsToFit {
  const float* scores = nullptr;  ///< margins, or the probabilities of the class for kSoftmax
  const float* labels = nullptr;
  const float* weights = nullptr;  ///< null: all are 1
  std::size_t size = 0;
  float class_label = 0;  ///< for kSoftmax: the class of the tree
};

/// Fills `gradients` and `hessians`, and returns the greatest |gradient| and Hessian. Throws
/// std::runtime_error if one is not finite.
Greatest ComputeGradients(Objective objective, const RowsToFit& rows, float* gradients, float* hessians);

/// Converts the gradients to whole numbers and returns their sum.
GradientSum PackGradients(const float* gradients, const float* hessians, std::size_t size, const Scale& scale,
                          Packed* packed);

}  // namespace warren::histgbt
