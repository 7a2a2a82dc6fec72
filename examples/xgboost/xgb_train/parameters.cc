// The table of parameters.
#include "examples/xgboost/xgb_train/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace warren::xgb_train {
namespace {

template <int kLeast>
int ParseInt(const Setting& setting) {
  const char* const end = setting.value.data() + setting.value.size();
  int number = 0;
  const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
  if (error != std::errc() || stop != end || number < kLeast) {
    Reject(setting, fmt::format("a whole number from {} to {}", kLeast, 2147483647));
  }
  return number;
}

bool ParseBool(const Setting& setting) {
  std::string lower = setting.value;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (lower == "1" || lower == "true") return true;
  if (lower == "0" || lower == "false") return false;
  Reject(setting, "0, 1, false or true");
}

std::string ParsePath(const Setting& setting) {
  return setting.value == "NULL" ? "" : setting.value;
}

Task ParseTask(const Setting& setting) {
  if (setting.value == "train") return Task::kTrain;
  if (setting.value == "pred") return Task::kPredict;
  if (setting.value == "dump") return Task::kDump;
  Reject(setting, "train, pred or dump");
}

std::string ParseDumpFormat(const Setting& setting) {
  constexpr std::array<std::string_view, 3> kFormats{"text", "json", "dot"};
  if (std::find(kFormats.begin(), kFormats.end(), setting.value) == kFormats.end()) {
    Reject(setting, "text, json or dot");
  }
  return setting.value;
}

int ParseVerbosity(const Setting& setting) {
  const int verbosity = ParseInt<0>(setting);
  if (verbosity > 3) Reject(setting, "0 (silent), 1 (warnings), 2 (info) or 3 (debug)");
  return verbosity;
}

void AcceptRowSplit(const Setting& setting) {
  if (setting.value != "auto" && setting.value != "row") Reject(setting, "auto or row");
}

void AcceptUsualModel(const Setting& setting) {
  if (ParseBool(setting)) {
    Reject(setting,
           "0: the model of one process with any number of workers needs XGBoost 2.1, from Python: "
           "warren.xgboost.train(..., reproducible=True)");
  }
}

// clang-format off
constexpr Rule<Parameters> kRules[] = {
    {"task", "", "train", "What to do: train, pred (predict) or dump (write the model as text).",
     [](Parameters& p, const Setting& s) { p.task = ParseTask(s); }},
    {"data", "train_path", "", "Training data, LibSVM text. In a job each worker reads its share of the file.",
     [](Parameters& p, const Setting& s) { p.train_path = ParsePath(s); }},
    {"eval_train", "", "0", "1: also evaluate on the training data, under the name 'train'.",
     [](Parameters& p, const Setting& s) { p.eval_train = ParseBool(s); }},
    {"num_round", "", "10", "Number of boosting rounds.",
     [](Parameters& p, const Setting& s) { p.num_round = ParseInt<1>(s); }},
    {"save_period", "", "0", "k: save model_dir/NNNN.model after every k-th round. 0: only the last model.",
     [](Parameters& p, const Setting& s) { p.save_period = ParseInt<0>(s); }},
    {"resume", "", "1", "0: with save_period, train from the first round even if there is a matching saved model.",
     [](Parameters& p, const Setting& s) { p.resume = ParseBool(s); }},
    {"model_dir", "", "./", "Folder of the saved models; created if missing.",
     [](Parameters& p, const Setting& s) { p.model_dir = ParsePath(s); }},
    {"model_in", "", "", "Model to predict with, to dump, or to train num_round further rounds on.",
     [](Parameters& p, const Setting& s) { p.model_in = ParsePath(s); }},
    {"model_out", "", "model_dir/NNNN.model", "File of the trained model: JSON if it ends in .json, else UBJSON.",
     [](Parameters& p, const Setting& s) { p.model_out = ParsePath(s); }},
    {"test:data", "test_path", "", "Data to predict.",
     [](Parameters& p, const Setting& s) { p.test_path = ParsePath(s); }},
    {"name_pred", "", "pred.txt", "File of the predictions, one per line in the order of the data; 'stdout' prints them.",
     [](Parameters& p, const Setting& s) { p.name_pred = s.value; }},
    {"pred_margin", "", "0", "1: predict margins instead of transformed values.",
     [](Parameters& p, const Setting& s) { p.pred_margin = ParseBool(s); }},
    {"iteration_begin", "", "0", "First round used to predict.",
     [](Parameters& p, const Setting& s) { p.iteration_begin = ParseInt<0>(s); }},
    {"iteration_end", "", "0", "End of the rounds used to predict (exclusive). 0: all.",
     [](Parameters& p, const Setting& s) { p.iteration_end = ParseInt<0>(s); }},
    {"ntree_limit", "", "0", "Older form of iteration_end, counted in trees. 0: all.",
     [](Parameters& p, const Setting& s) { p.ntree_limit = ParseInt<0>(s); }},
    {"name_dump", "", "dump.txt", "File of the dump; 'stdout' prints it.",
     [](Parameters& p, const Setting& s) { p.name_dump = s.value; }},
    {"dump_format", "", "text", "text, json or dot.",
     [](Parameters& p, const Setting& s) { p.dump_format = ParseDumpFormat(s); }},
    {"dump_stats", "", "0", "1: also dump gain and cover of the splits.",
     [](Parameters& p, const Setting& s) { p.dump_stats = ParseBool(s); }},
    {"fmap", "name_fmap", "", "Feature map with the names of the features in the dump.",
     [](Parameters& p, const Setting& s) { p.feature_map = ParsePath(s); }},
    {"verbosity", "", "1", "0 silent, 1 warnings, 2 info, 3 debug.",
     [](Parameters& p, const Setting& s) { p.verbosity = ParseVerbosity(s); }},
    {"silent", "", "0", "Older form of verbosity: 1 is verbosity=0.",
     [](Parameters& p, const Setting& s) { if (ParseBool(s)) p.verbosity = 0; }},
    {"dsplit", "", "auto", "How workers split the data: only by rows (auto, row).",
     [](Parameters&, const Setting& s) { AcceptRowSplit(s); }},
    {"reproducible", "", "0", "Only 0: the model of one process with any number of workers is trained from Python.",
     [](Parameters&, const Setting& s) { AcceptUsualModel(s); }},
    {"use_buffer", "", "0", "Accepted for old configurations; does nothing.",
     [](Parameters&, const Setting& s) { ParseBool(s); }},
};
// clang-format on

// The canonical name of a setting's key; a later value replaces an earlier one with the same name.
std::string_view CanonicalKey(const Setting& setting) {
  const auto* const rule = FindRule<Parameters>(kRules, setting.key);
  return rule ? rule->name : std::string_view(setting.key);
}

// Keeps the last setting of each key, in the order of these last occurrences. All eval_metric settings are
// kept, since XGBoost evaluates each of them.
std::vector<Setting> LaterWins(const std::vector<Setting>& settings) {
  std::vector<Setting> kept;
  std::set<std::string> seen;
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting) {
    const bool repeatable = setting->key == "eval_metric";
    if (seen.emplace(CanonicalKey(*setting)).second || repeatable) kept.push_back(*setting);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

void Apply(Parameters& parameters, const Setting& setting) {
  if (const auto* const rule = FindRule<Parameters>(kRules, setting.key)) {
    rule->apply(parameters, setting);
  } else if (auto eval_set = ParseEvalSet(setting)) {
    parameters.eval_sets.push_back(std::move(*eval_set));
  } else {
    parameters.booster.push_back(setting);
  }
}

void Require(const std::string& value, std::string_view name, std::string_view task) {
  if (value.empty()) throw ConfigError(fmt::format("task={} needs {}, which is not set", task, name));
}

void RequireWhatTheTaskNeeds(const Parameters& p) {
  if (p.task == Task::kTrain) Require(p.train_path, "data", "train");
  if (p.task == Task::kTrain) Require(p.model_dir, "model_dir", "train");
  if (p.task == Task::kPredict) Require(p.test_path, "test:data", "pred");
  if (p.task == Task::kPredict) Require(p.model_in, "model_in", "pred");
  if (p.task == Task::kDump) Require(p.model_in, "model_in", "dump");
}

// A run that can be resumed must grow the same trees with or without an interruption.
void RefuseWhatCannotResume(const Parameters& p) {
  if (p.task != Task::kTrain || p.save_period == 0 || !p.resume) return;
  for (const Setting& setting : p.booster) {
    if (setting.key == "seed_per_iteration" && setting.value != "1" && setting.value != "true") {
      Reject(setting,
             "1 with save_period (otherwise a resumed run draws different random numbers), or resume = 0");
    }
    if (setting.key == "process_type" && setting.value == "update") {
      Reject(
          setting,
          "default with save_period (a saved model lacks the trees that are still to be updated), or resume = 0");
    }
  }
}

}  // namespace

Parameters MakeParameters(const std::vector<Setting>& settings) {
  Parameters parameters;
  for (const Setting& setting : LaterWins(settings)) Apply(parameters, setting);
  RequireWhatTheTaskNeeds(parameters);
  RefuseWhatCannotResume(parameters);
  return parameters;
}

std::string DescribeParameters() {
  return DescribeRules<Parameters>(kRules);
}

}  // namespace warren::xgb_train
