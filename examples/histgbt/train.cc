#include "examples/histgbt/train.h"

#include <fmt/format.h>
#include <rabit/rabit.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/cache/atomic_file.h"
#include "examples/histgbt/backend.h"
#include "examples/histgbt/checkpoint.h"
#include "examples/histgbt/dataset.h"
#include "examples/histgbt/grower.h"
#include "examples/histgbt/metric.h"
#include "examples/histgbt/model.h"

namespace warren::histgbt {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void CheckRows(const Dataset& set, const Options& options) {
  CheckLabels(options.objective, options.num_class, set.labels, set.name);
  for (std::size_t row = 0; row < set.weights.size(); ++row) {
    if (!(set.weights[row] >= 0) || std::isinf(set.weights[row])) {
      throw std::runtime_error(
          fmt::format("{}: row {} of this worker's share has the weight {}, expected a number of at least 0",
                      set.name, row + 1, set.weights[row]));
    }
  }
}

class Run {
 public:
  explicit Run(const Options& options) : options_(options), threads_(options.nthread) {}

  void Do() {
    const int version = rabit::LoadCheckPoint(&state_);
    Load();
    if (version == 0) rabit::LazyCheckPoint(&state_);
    Clock::time_point begin = Clock::now();
    Prepare();
    Tell(2, fmt::format("prepared in {:.3f} s", SecondsSince(begin)));
    begin = Clock::now();
    const std::uint64_t first = state_.rounds;
    while (state_.rounds < static_cast<std::uint64_t>(options_.num_round) && !state_.stopped) BoostOnce();
    Tell(2, fmt::format("{} rounds in {:.3f} s", state_.rounds - first, SecondsSince(begin)));
    if (rabit::GetRank() == 0) Save();
    // Until Finalize returns, a restarted worker may request the state, so the state must exist until then.
    rabit::Finalize();
  }

 private:
  /// On rank 0, prints a line through the tracker if the user's verbosity is at least `verbosity`.
  void Tell(int verbosity, const std::string& line) const {
    if (options_.verbosity >= verbosity && rabit::GetRank() == 0) rabit::TrackerPrint(line + '\n');
  }

  void Load() {
    const Clock::time_point begin = Clock::now();
    DatasetLoader loader(state_.agreed, options_.max_bin, options_.verbosity, threads_);
    train_ = loader.Load(options_.data, options_.data);
    CheckRows(train_, options_);
    for (const EvalSet& set : options_.eval_sets) {
      others_.push_back(loader.Load(set.path, set.name));
      CheckRows(others_.back(), options_);
    }
    Tell(2, fmt::format("loaded in {:.3f} s, {:.3f} s of it binning: {} rows here, {} features, {} bins",
                        SecondsSince(begin), train_.seconds_to_bin, train_.rows(), cuts().features(),
                        cuts().TotalBins()));
  }

  /// Returns the margins of the trees so far, added in the order in which the trees were grown.
  std::vector<float> MarginsOf(const Dataset& set) {
    const auto classes = static_cast<std::size_t>(options_.trees_per_round());
    std::vector<float> margins(classes * set.rows(), BaseMargin(options_.objective, options_.base_score));
    for (std::size_t i = 0; i < state_.trees.size(); ++i) {
      AddPredictions(state_.trees[i], set.matrix, cuts(), margins.data() + i % classes * set.rows(),
                     threads_);
    }
    return margins;
  }

  void Prepare() {
    const TrainingRows rows{&cuts(),        &train_.matrix,     train_.labels,
                            train_.weights, options_.objective, options_.trees_per_round()};
    backend_ = options_.device == Device::kCuda ? MakeCudaBackend(rows) : MakeCpuBackend(rows, threads_);
    backend_->SetMargins(MarginsOf(train_));
    for (const Dataset& set : others_) other_margins_.push_back(MarginsOf(set));
  }

  void BoostOnce() {
    backend_->BeginRound();
    const int classes = options_.trees_per_round();
    std::vector<Tree> grown;
    for (int k = 0; k < classes; ++k) {
      grown.push_back(GrowTree(*backend_, cuts(), k, options_.tree));
      for (std::size_t i = 0; i < others_.size(); ++i) {
        AddPredictions(grown.back(), others_[i].matrix, cuts(),
                       other_margins_[i].data() + static_cast<std::size_t>(k) * others_[i].rows(), threads_);
      }
    }
    EvaluateAll();
    // The state does not change before the last collective of the next round, so a lazy checkpoint, which
    // keeps only a pointer, is enough.
    std::move(grown.begin(), grown.end(), std::back_inserter(state_.trees));
    ++state_.rounds;
    rabit::LazyCheckPoint(&state_);
  }

  /// Evaluates all sets, prints a line like XGBoost's, and decides whether to stop early.
  void EvaluateAll() {
    std::string line = fmt::format("[{}]", state_.rounds);
    double last = std::numeric_limits<double>::quiet_NaN();
    const auto evaluate = [&](const Dataset& set, const std::string& name, std::span<const float> margins) {
      for (const std::string& metric : options_.metrics) {
        last = Evaluate(metric,
                        {set.labels, set.weights, margins, options_.objective, options_.trees_per_round()},
                        threads_);
        line += fmt::format("\t{}-{}:{:.6f}", name, metric, last);
      }
    };
    if (options_.eval_train) evaluate(train_, "train", backend_->Margins());
    for (std::size_t i = 0; i < others_.size(); ++i) evaluate(others_[i], others_[i].name, other_margins_[i]);
    if (options_.eval_train || !others_.empty()) Tell(0, line);
    if (options_.early_stopping_rounds > 0) Judge(last);
  }

  void Judge(double score) {
    const bool greater = IsBetterWhenGreater(options_.metrics.back());
    const bool better =
        std::isnan(state_.best_score) || (greater ? score > state_.best_score : score < state_.best_score);
    if (better) {
      state_.best_score = score;
      state_.best_round = state_.rounds;
    } else if (state_.rounds - state_.best_round >=
               static_cast<std::uint64_t>(options_.early_stopping_rounds)) {
      state_.stopped = true;
      Tell(0, fmt::format("stopping early: the best round was {}, with {:.6f}", state_.best_round,
                          state_.best_score));
    }
  }

  void Save() {
    Model model;
    model.objective = options_.objective_name;
    model.num_class = options_.objective == Objective::kSoftmax ? options_.num_class : 0;
    model.base_score = options_.base_score;
    model.num_features = cuts().features();
    model.trees = state_.trees;
    Attributes attributes;
    if (options_.early_stopping_rounds > 0 && state_.rounds > 0) {
      model.trees.resize((state_.best_round + 1) * static_cast<std::size_t>(options_.trees_per_round()));
      attributes = {{"best_iteration", std::to_string(state_.best_round)},
                    {"best_score", fmt::format("{}", state_.best_score)}};
    }
    WriteWholeFile(options_.model_out, ToXgboostJson(model, attributes));
  }

  const Cuts& cuts() const { return state_.agreed.cuts; }

  const Options& options_;
  Threads threads_;
  State state_;
  Dataset train_;
  std::vector<Dataset> others_;
  std::vector<std::vector<float>> other_margins_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace

void Train(const Options& options) {
  if (options.device == Device::kCuda) SelectGpu();  // fail before any data is read
  if (rabit::GetRank() == 0) RequireWritable(options.model_out);
  Run(options).Do();
}

}  // namespace warren::histgbt
