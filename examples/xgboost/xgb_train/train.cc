// Training: finds the model to start from, runs the rounds and saves models.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/cache/atomic_file.h"
#include "examples/xgboost/xgb_train/booster_setup.h"
#include "examples/xgboost/xgb_train/dataset.h"
#include "examples/xgboost/xgb_train/saved_models.h"
#include "examples/xgboost/xgb_train/tasks.h"
#include "posix/folder_lock.h"

namespace warren::xgb_train {
namespace {

/// The attribute of a saved model that holds the DescribeRun text of the run that saved it.
constexpr const char* kRunAttribute = "xgb-train.run";

std::string LastModelPath(const Parameters& p) {
  return p.model_out.empty() ? SavedModelPath(p.model_dir, p.num_round) : p.model_out;
}

// Prepares the outputs on rank 0 before the work starts: creates the folder of saved models, checks that the
// last model can be written, and removes leftovers of killed runs. Returns the lock of the folder if
// save_period is set; throws if another run holds it.
posix::Descriptor PrepareOutputs(const Parameters& p) {
  if (p.save_period > 0 || p.model_out.empty()) std::filesystem::create_directories(p.model_dir);
  RequireWritable(LastModelPath(p));
  RemoveLeftovers(LastModelPath(p));
  if (p.save_period == 0) return {};
  std::optional<posix::Descriptor> lock = posix::LockFolder(p.model_dir);
  if (!lock) {
    throw std::runtime_error(fmt::format(
        "another run is saving its models in model_dir={}; give each run its own folder", p.model_dir));
  }
  RemoveLeftoversIn(p.model_dir, IsSavedModelName);
  return std::move(*lock);
}

/// The data sets of a run, linked by LinkMatrices. Evaluation sets are in the order written, followed by the
/// training data if they are evaluated, too.
struct Data {
  Dataset train;
  std::vector<Dataset> others;
  std::vector<std::string> eval_names;
  std::vector<const DMatrix*> eval_matrices;
  std::vector<const DMatrix*> all_matrices;
};

bool GrowsByHistograms(const Parameters& p) {
  return std::any_of(p.booster.begin(), p.booster.end(), [](const Setting& setting) {
    return (setting.key == "tree_method" && setting.value == "hist") ||
           (setting.key == "updater" && setting.value.find("grow_quantile_histmaker") != std::string::npos);
  });
}

// Throws std::runtime_error if XGBoost 1.x grows trees by histograms and some workers have no rows: the
// workers would make different collective calls, and then wait for each other or fail.
void RequireRowsForHistograms(const Parameters& p, const Dataset& train, const Communicator& job) {
  if (train.workers_without_rows == 0 || !GrowsByHistograms(p) || !XgboostVersion().starts_with("1.")) return;
  throw std::runtime_error(fmt::format(
      "{}: {} of {} workers have no rows of it, and XGBoost {} cannot train with tree_method=hist then; start fewer workers, or set tree_method=approx",
      p.train_path, train.workers_without_rows, job.Size(), XgboostVersion()));
}

Data LoadData(const Parameters& p, Communicator& job) {
  Data data{LoadDataset(p.train_path, Use::kTraining, job, p.verbosity), {}, {}, {}, {}};
  RequireRowsForHistograms(p, data.train, job);
  for (const EvalSet& set : p.eval_sets) {
    data.others.push_back(LoadDataset(set.path, Use::kEvaluating, job, p.verbosity));
    data.eval_names.push_back(set.name);
  }
  return data;
}

// Sets pointers into `data`, which must not move afterwards.
void LinkMatrices(Data& data, bool eval_train) {
  data.all_matrices = {&data.train.matrix};
  for (const Dataset& set : data.others) {
    data.all_matrices.push_back(&set.matrix);
    data.eval_matrices.push_back(&set.matrix);
  }
  if (!eval_train) return;
  data.eval_names.emplace_back("train");
  data.eval_matrices.push_back(&data.train.matrix);
}

/// The start of training: the number of finished rounds, and the bytes of the model that contains them. For
/// round 0, the model is model_in; without model_in, there are no bytes.
struct Start {
  int round = 0;
  std::string model;
};

/// Returns a saved model's bytes if it is complete and belongs to the run described by `run`; otherwise
/// stores the reason in `why`.
std::optional<std::string> TakeIfOurs(const std::string& path, const std::string& run, std::string& why) {
  try {
    std::string bytes = ReadModel(path);
    Booster booster;
    booster.LoadModel(bytes);
    if (booster.Attribute(kRunAttribute) == run) return bytes;
    why = booster.Attribute(kRunAttribute).empty()
              ? "is the last model of a run, which does not record its data and parameters"
              : "belongs to another run: its data or booster parameters differ";
  } catch (const std::runtime_error& error) {
    why = fmt::format("is not a complete model ({})", error.what());
  }
  return std::nullopt;
}

Start FindStart(const Parameters& p, const std::string& run, std::string model_in, Communicator& job) {
  for (const int round : SavedRounds(p.model_dir)) {
    if (round > p.num_round) continue;
    const std::string path = SavedModelPath(p.model_dir, round);
    std::string why;
    if (auto model = TakeIfOurs(path, run, why)) {
      job.Print(fmt::format("resuming from {} at round {}", path, round));
      return {round, std::move(*model)};
    }
    job.Print(fmt::format("not resuming from {}: it {}", path, why));
  }
  return {0, std::move(model_in)};
}

// Rank 0 chooses the start for all workers, and sends them its round and model.
Start AgreeOnStart(const Parameters& p, const std::string& run, const std::string& model_in,
                   Communicator& job) {
  Start start{0, model_in};
  if (p.save_period == 0 || !p.resume) return start;
  if (job.IsRoot()) start = FindStart(p, run, model_in, job);
  start.round = static_cast<int>(job.Sum(job.IsRoot() ? static_cast<uint64_t>(start.round) : 0));
  job.Broadcast(start.model);
  return start;
}

ModelFormat FormatFor(const std::string& path) {
  return path.ends_with(".json") ? ModelFormat::kJson : ModelFormat::kUbjson;
}

void SavePeriodic(Booster& booster, const Parameters& p, int rounds_done, const std::string& run) {
  booster.SetAttribute(kRunAttribute, run);
  WriteWholeFile(SavedModelPath(p.model_dir, rounds_done), booster.SaveModel(ModelFormat::kUbjson));
  booster.RemoveAttribute(kRunAttribute);
}

bool IsPeriodic(const Parameters& p, int rounds_done) {
  return p.save_period > 0 && rounds_done % p.save_period == 0;
}

void SaveLast(Booster& booster, const Parameters& p) {
  const std::string path = LastModelPath(p);
  const bool saved_already = p.model_out.empty() && IsPeriodic(p, p.num_round);
  booster.RemoveAttribute(kRunAttribute);
  if (!saved_already) WriteWholeFile(path, booster.SaveModel(FormatFor(path)));
}

void Boost(Booster& booster, const Parameters& p, const Data& data, int first_round, const std::string& run,
           Communicator& job) {
  for (int round = first_round; round < p.num_round; ++round) {
    booster.UpdateOneRound(round, data.train.matrix);
    const std::string line = booster.Evaluate(round, data.eval_matrices, data.eval_names);
    if (job.IsRoot()) job.Print(line);
    if (!IsPeriodic(p, round + 1)) continue;
    if (job.IsRoot()) SavePeriodic(booster, p, round + 1, run);
    if (StartsAfreshWhenSaved(p)) {
      booster = MakeBooster(p, booster.SaveModel(ModelFormat::kUbjson), data.all_matrices);
    }
  }
}

}  // namespace

void Train(const Parameters& p, Communicator& job) {
  posix::Descriptor folder_of_saved_models;
  if (job.IsRoot()) folder_of_saved_models = PrepareOutputs(p);
  Data data = LoadData(p, job);
  LinkMatrices(data, p.eval_train);
  const std::string model_in = ReadModelForAll(p.model_in, job);
  const std::string run = DescribeRun(p, data.train.digest, model_in, XgboostVersion());
  const Start start = AgreeOnStart(p, run, model_in, job);
  // With constant Hessians, `approx` makes its cuts in the first round, from the rows drawn for that round,
  // and keeps them in the matrix. A resumed run repeats the first round, without keeping its trees, to get
  // the same cuts.
  if (start.round > 0 && StartsAfreshWhenSaved(p)) {
    MakeBooster(p, model_in, data.all_matrices).UpdateOneRound(0, data.train.matrix);
  }
  Booster booster = MakeBooster(p, start.model, data.all_matrices);
  Boost(booster, p, data, start.round, run, job);
  if (job.IsRoot()) SaveLast(booster, p);
}

}  // namespace warren::xgb_train
