// The parameters that xgb-train itself handles, from one table that also makes the help text. All other
// settings go to the booster.
#pragma once

#include <string>
#include <vector>

#include "examples/xgboost/xgb_train/setting_table.h"

namespace warren::xgb_train {

enum class Task { kTrain, kPredict, kDump };

/// Settings with defaults filled in. Paths without a default are empty if unset. The value "NULL" makes any
/// path empty, except name_pred and name_dump.
struct Parameters {
  Task task = Task::kTrain;
  std::string train_path;
  std::string test_path;
  std::vector<EvalSet> eval_sets;
  bool eval_train = false;
  int num_round = 10;

  std::string model_in;
  std::string model_out;
  std::string model_dir = "./";
  int save_period = 0;  ///< rounds between two saved models; 0 saves only the last one
  bool resume = true;

  std::string name_pred = "pred.txt";
  bool pred_margin = false;
  int iteration_begin = 0;
  int iteration_end = 0;  ///< exclusive; 0 means all rounds
  int ntree_limit = 0;    ///< older form of iteration_end, in trees; 0 means no limit

  std::string name_dump = "dump.txt";
  std::string dump_format = "text";
  bool dump_stats = false;
  std::string feature_map;

  int verbosity = 1;  ///< XGBoost's scale: 0 silent, 1 warnings, 2 info, 3 debug
  /// Booster parameters in the order written; each key occurs once, except eval_metric.
  std::vector<Setting> booster;
};

/// Sorts settings into Parameters; the last setting of a key wins. Throws ConfigError naming the setting's
/// origin, what was found and what was expected.
Parameters MakeParameters(const std::vector<Setting>& settings);

/// Returns the help text of the parameters, one paragraph per parameter, from the same table.
std::string DescribeParameters();

}  // namespace warren::xgb_train
