// Gradients of many rows: loops without branches on the data, which compilers make SIMD of.
#pragma once

#include <cstddef>

#include "examples/histgbt/arithmetic.h"
#include "examples/histgbt/backend.h"
#include "examples/histgbt/objective.h"

namespace warren::histgbt {

/// Some rows of the training data.
struct RowsToFit {
  const float* scores = nullptr;  ///< margins; of kSoftmax the probabilities of the class
  const float* labels = nullptr;
  const float* weights = nullptr;  ///< null: all are 1
  std::size_t size = 0;
  float class_label = 0;  ///< of kSoftmax: the class that the tree is for
};

/// Fills `gradients` and `hessians`, and says which are the greatest. Throws std::runtime_error when one is
/// not finite.
Greatest ComputeGradients(Objective objective, const RowsToFit& rows, float* gradients, float* hessians);

/// Makes whole numbers of them, and returns their sum.
GradientSum PackGradients(const float* gradients, const float* hessians, std::size_t size, const Scale& scale,
                          Packed* packed);

}  // namespace warren::histgbt
