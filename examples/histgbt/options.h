// The options of histgbt, which have XGBoost's names.
#pragma once

#include <string>
#include <vector>

#include "examples/histgbt/grower.h"
#include "examples/histgbt/objective.h"
#include "examples/xgboost/xgb_train/setting_table.h"

namespace warren::histgbt {

using xgb_train::EvalSet;

enum class Device : std::uint8_t { kCpu, kCuda };

struct Options {
  std::string data;
  std::vector<EvalSet> eval_sets;
  bool eval_train = false;
  std::vector<std::string> metrics;  ///< at least one
  int num_round = 10;
  int early_stopping_rounds = 0;  ///< 0: never

  Objective objective = Objective::kSquared;
  std::string objective_name = "reg:squarederror";
  int num_class = 0;
  float base_score = 0.5F;
  TreeParameters tree;
  int max_bin = 256;

  Device device = Device::kCpu;
  int nthread = 0;
  std::string model_out = "histgbt.json";
  int verbosity = 1;

  /// The number of trees per round.
  int trees_per_round() const { return objective == Objective::kSoftmax ? num_class : 1; }
};

/// Throws xgb_train::ConfigError for an invalid setting, naming the setting, its origin, what was found and
/// what was expected, and for settings that do not fit together.
Options MakeOptions(const std::vector<xgb_train::Setting>& settings);

/// Returns the help text, which lists all options and their defaults.
std::string DescribeOptions();

}  // namespace warren::histgbt
