#include "examples/histgbt/options.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "examples/histgbt/metric.h"

namespace warren::histgbt {
namespace {

using xgb_train::ConfigError;
using xgb_train::Reject;
using xgb_train::Rule;
using xgb_train::Setting;

template <typename T>
T Parse(const Setting& setting, T least, T most, std::string_view expected) {
  T value{};
  const char* const end = setting.value.data() + setting.value.size();
  // libc++ before version 20 has no from_chars for floating-point numbers.
  const auto [at, error] = [&] {
    if constexpr (std::is_integral_v<T>) {
      return std::from_chars(setting.value.data(), end, value);
    } else {
      return fast_float::from_chars(setting.value.data(), end, value);
    }
  }();
  if (error != std::errc{} || at != end || !(value >= least && value <= most)) Reject(setting, expected);
  return value;
}

int Whole(const Setting& setting, int least, int most = std::numeric_limits<int>::max()) {
  return Parse<int>(setting, least, most,
                    most == std::numeric_limits<int>::max()
                        ? fmt::format("a whole number from {}", least)
                        : fmt::format("a whole number from {} to {}", least, most));
}

double NotNegative(const Setting& setting) {
  return Parse<double>(setting, 0, std::numeric_limits<double>::max(), "a number of at least 0");
}

bool Flag(const Setting& setting) {
  if (setting.value != "0" && setting.value != "1") Reject(setting, "0 or 1");
  return setting.value == "1";
}

void SetObjective(Options& options, const Setting& setting) {
  if (setting.value == "reg:squarederror" || setting.value == "reg:linear") {
    options.objective = Objective::kSquared;
  } else if (setting.value == "binary:logistic") {
    options.objective = Objective::kLogistic;
  } else if (setting.value == "multi:softprob" || setting.value == "multi:softmax") {
    options.objective = Objective::kSoftmax;
  } else {
    Reject(setting, "reg:squarederror, binary:logistic, multi:softprob or multi:softmax");
  }
  options.objective_name = setting.value == "reg:linear" ? "reg:squarederror" : setting.value;
}

void SetDevice(Options& options, const Setting& setting) {
  if (setting.value == "cpu") {
    options.device = Device::kCpu;
  } else if (setting.value == "cuda") {
    options.device = Device::kCuda;
  } else {
    Reject(setting, "cpu or cuda");
  }
}

void AddMetric(Options& options, const Setting& setting) {
  if (!IsMetric(setting.value)) Reject(setting, "auc, logloss, error, rmse, mae, merror or mlogloss");
  options.metrics.push_back(setting.value);
}

constexpr int kMostDepth = 20;
constexpr int kMostThreads = 1024;  // data::Reader accepts no more

// clang-format off
constexpr Rule<Options> kRules[] = {
    {"data", "train", "", "Training data: path[;path...][?key=value...], as in docs/how-to/data-text.md.",
     [](Options& o, const Setting& s) { o.data = s.value; }},
    {"eval_train", "", "0", "1: also evaluate the training data.",
     [](Options& o, const Setting& s) { o.eval_train = Flag(s); }},
    {"eval_metric", "", "the objective's", "auc, logloss, error, rmse, mae, merror or mlogloss; may be given several times.",
     AddMetric},
    {"num_round", "", "10", "Rounds: one tree each, or num_class.",
     [](Options& o, const Setting& s) { o.num_round = Whole(s, 0); }},
    {"early_stopping_rounds", "", "0", "Stop when the last metric of the last evaluation set has not improved for this many rounds, and save the best round's model. 0: never.",
     [](Options& o, const Setting& s) { o.early_stopping_rounds = Whole(s, 0); }},
    {"objective", "", "reg:squarederror", "reg:squarederror, binary:logistic, multi:softprob or multi:softmax.", SetObjective},
    {"num_class", "", "", "Classes of multi:softprob and multi:softmax.",
     [](Options& o, const Setting& s) { o.num_class = Whole(s, 2, 10000); }},
    {"base_score", "", "0.5", "Prediction before the first tree.",
     [](Options& o, const Setting& s) { o.base_score = Parse<float>(s, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max(), "a number"); }},
    {"eta", "learning_rate", "0.3", "Factor for each tree's values.",
     [](Options& o, const Setting& s) { o.tree.eta = NotNegative(s); }},
    {"max_depth", "", "6", "Splits from the root to a leaf, 1 to 20.",
     [](Options& o, const Setting& s) { o.tree.max_depth = Whole(s, 1, kMostDepth); }},
    {"lambda", "reg_lambda", "1", "L2 regularisation of leaf values.",
     [](Options& o, const Setting& s) { o.tree.split.lambda = NotNegative(s); }},
    {"gamma", "min_split_loss", "0", "Least loss reduction of a split.",
     [](Options& o, const Setting& s) { o.tree.split.gamma = NotNegative(s); }},
    {"min_child_weight", "", "1", "Least sum of Hessians in a child.",
     [](Options& o, const Setting& s) { o.tree.split.min_child_weight = NotNegative(s); }},
    {"max_bin", "", "256", "Bins per feature, including the one for missing values; 2 to 65536.",
     [](Options& o, const Setting& s) { o.max_bin = Whole(s, 2, 65536); }},
    {"device", "", "cpu", "cpu or cuda.", SetDevice},
    {"nthread", "", "0", "Threads. 0: one per core.",
     [](Options& o, const Setting& s) { o.nthread = Whole(s, 0, kMostThreads); }},
    {"model_out", "", "histgbt.json", "Output file of the model, as XGBoost's JSON.",
     [](Options& o, const Setting& s) { o.model_out = s.value; }},
    {"verbosity", "", "1", "0: only errors and evaluations; 1: also warnings; 2: also timings.",
     [](Options& o, const Setting& s) { o.verbosity = Whole(s, 0, 3); }},
};
// clang-format on

void Apply(Options& options, const Setting& setting) {
  if (const auto* const rule = xgb_train::FindRule<Options>(kRules, setting.key)) {
    rule->apply(options, setting);
  } else if (auto eval_set = xgb_train::ParseEvalSet(setting)) {
    // As in xgb-train, a later set of the same name takes the place of the former one, at the end of the
    // list.
    std::erase_if(options.eval_sets,
                  [&](const xgb_train::EvalSet& former) { return former.name == eval_set->name; });
    options.eval_sets.push_back(std::move(*eval_set));
  } else {
    throw ConfigError(
        fmt::format("{}: there is no option {}; histgbt --help lists them", setting.origin, setting.key));
  }
}

void RequireWhatBelongsTogether(Options& options) {
  if (options.data.empty()) throw ConfigError("data is not set; name the training data");
  if (options.model_out.empty()) throw ConfigError("model_out is empty; name the output file");
  if (options.objective == Objective::kSoftmax && options.num_class == 0) {
    throw ConfigError(fmt::format("objective={} needs num_class", options.objective_name));
  }
  if (options.objective != Objective::kSoftmax && options.num_class != 0) {
    throw ConfigError(fmt::format("num_class={} is for multi:softprob and multi:softmax, but objective is {}",
                                  options.num_class, options.objective_name));
  }
  if (options.early_stopping_rounds > 0 && options.eval_sets.empty() && !options.eval_train) {
    throw ConfigError("early_stopping_rounds needs something to evaluate: eval[NAME]=path, or eval_train=1");
  }
  if (options.metrics.empty()) options.metrics = {std::string(DefaultMetric(options.objective))};
  try {
    for (const std::string& metric : options.metrics) CheckMetric(metric, options.objective);
    BaseMargin(options.objective, options.base_score);
  } catch (const std::runtime_error& error) {
    throw ConfigError(error.what());
  }
}

}  // namespace

Options MakeOptions(const std::vector<xgb_train::Setting>& settings) {
  Options options;
  for (const Setting& setting : settings) Apply(options, setting);
  RequireWhatBelongsTogether(options);
  return options;
}

std::string DescribeOptions() {
  return xgb_train::DescribeRules<Options>(kRules);
}

}  // namespace warren::histgbt
