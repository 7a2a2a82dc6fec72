// The tasks that only use an existing model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iterator>
#include <stdexcept>

#include "data/cache/atomic_file.h"
#include "examples/xgboost/xgb_train/booster_setup.h"
#include "examples/xgboost/xgb_train/dataset.h"
#include "examples/xgboost/xgb_train/tasks.h"

namespace warren::xgb_train {
namespace {

AtomicFile Open(const std::string& name) {
  return name == "stdout" ? AtomicFile::StandardOutput() : AtomicFile(name);
}

void WriteOutput(const std::string& name, const std::string& text) {
  AtomicFile file = Open(name);
  file.Write(text);
  file.Commit();
}

// Returns one value per line. Nine significant digits preserve every float exactly.
std::string OneALine(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) fmt::format_to(std::back_inserter(text), "{:.9g}\n", value);
  return text;
}

std::string JoinTrees(const std::vector<std::string>& trees, const std::string& format) {
  if (format == "json") return fmt::format("[\n{}\n]\n", fmt::join(trees, ",\n"));
  std::string text;
  for (size_t i = 0; i < trees.size(); ++i) text += fmt::format("booster[{}]:\n{}", i, trees[i]);
  return text;
}

void RequireFeatureMap(const std::string& path) {
  if (!path.empty() && !std::filesystem::is_regular_file(path)) {
    throw std::runtime_error(fmt::format("{}: no such feature map", path));
  }
}

}  // namespace

void Predict(const Parameters& p, Communicator& job) {
  if (job.IsRoot() && p.name_pred != "stdout") RequireWritable(p.name_pred);
  const Dataset data = LoadDataset(p.test_path, Use::kPredicting, job, p.verbosity);
  Booster booster = MakeBooster(p, ReadModelForAll(p.model_in, job), {});
  const PredictOptions options{p.pred_margin, p.iteration_begin, p.iteration_end, p.ntree_limit};
  const std::string text = job.GatherToRoot(OneALine(booster.Predict(data.matrix, options)));
  if (job.IsRoot()) WriteOutput(p.name_pred, text);
}

void Dump(const Parameters& p, Communicator& job) {
  const std::string model = ReadModelForAll(p.model_in, job);
  Booster booster = MakeBooster(p, model, {});
  if (!job.IsRoot()) return;
  RequireFeatureMap(p.feature_map);
  WriteOutput(p.name_dump,
              JoinTrees(booster.Dump(p.feature_map, p.dump_stats, p.dump_format), p.dump_format));
}

}  // namespace warren::xgb_train
