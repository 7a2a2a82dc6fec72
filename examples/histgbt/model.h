// A trained model, and its conversion to XGBoost's JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/histgbt/options.h"
#include "examples/histgbt/tree.h"

namespace warren::histgbt {

struct Model {
  std::string objective;  ///< its name in XGBoost
  int num_class = 0;      ///< 0 unless the objective has classes
  float base_score = 0.5F;
  std::size_t num_features = 0;
  std::vector<Tree> trees;  ///< round after round; within a round, class after class

  int trees_per_round() const { return num_class > 0 ? num_class : 1; }
};

/// Attributes that XGBoost stores with a model, such as best_iteration.
using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Returns the model in XGBoost's JSON schema of version 1.7, which later versions also read.
std::string ToXgboostJson(const Model& model, const Attributes& attributes);

}  // namespace warren::histgbt
