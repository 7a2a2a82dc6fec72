// xgb-train: trains XGBoost models, predicts with them and dumps them, as specified in a configuration file,
// alone or as one worker of a job. It reads the format of the command line program that XGBoost no longer
// ships.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "examples/xgboost/xgb_train/communicator.h"
#include "examples/xgboost/xgb_train/config.h"
#include "examples/xgboost/xgb_train/page_folder.h"
#include "examples/xgboost/xgb_train/parameters.h"
#include "examples/xgboost/xgb_train/tasks.h"
#include "examples/xgboost/xgb_train/xgboost_api.h"

namespace {

using namespace warren::xgb_train;

constexpr int kRunFailed = 1;
constexpr int kBadUsage = 2;

constexpr const char* kUsage =
    R"(usage: xgb-train [-h | --help] [-V | --version] [CONFIG] [key=value ...]

Trains an XGBoost model, predicts with one, or writes one as text.

CONFIG consists of lines `key = value`. A `#` starts a comment; keys and values that contain blanks or
`#` are quoted, as "..." or '...'. Arguments override the file, and later values override earlier ones
(except for eval_metric, which may be given several times). Keys that are not listed below are booster
parameters (eta, max_depth, objective...):
    https://xgboost.readthedocs.io/en/release_1.7.0/parameter.html

    xgb-train heart.conf num_round=20 max_depth=3 eval[test]=test.txt
    dmlc-submit --num-workers 3 xgb-train heart.conf

Parameters, with their defaults in brackets:

)";

constexpr const char* kNotes = R"(
Data is LibSVM text, `label[:weight] [qid:n] index[:value] ...`, one row per line; or libfm or CSV. A data
set is `path[;path...][?key=value...][#cache]`: files, folders, patterns, plain or compressed, with keys such
as `format=csv&label_column=0`, `indexing_mode=1`, `bad_rows=skip`. With a cache, the rows stay on disk,
except for the training data of a job: XGBoost cannot train on it from disk, so each worker keeps its share in
memory. A row that cannot be read ends the program with an error that names file, line and column. See
docs/how-to/data-text.md.

In a job (DMLC_TRACKER_URI and DMLC_TRACKER_PORT are set, as dmlc-submit does) each worker reads its
share of the data, the tracker prints evaluation lines, and only rank 0 writes files.
Files are written under a temporary name and renamed, so that no file is ever an incomplete model.

With save_period=k, a run that is started again resumes from the newest model in model_dir that has the
same data contents, booster parameters, model_in and XGBoost version (num_round and the number of workers
may differ), and prints a line about it. Saved models of other runs are kept until their round is saved
again. resume=0 starts over. The resumed model equals that of an uninterrupted run: random choices depend on
seed and round (seed_per_iteration=1, whatever XGBoost's default). What XGBoost keeps between rounds besides
the model (with subsample, colsample_by* and feature_selector) is reset at every saved model, so there
save_period affects the trees. seed_per_iteration=0 and process_type=update are refused with save_period,
unless resume=0. gblinear's updater shotgun is not reproducible on several threads (nthread), which race.

Exit code: 0 done; 1 something failed while running (data, files, the job); 2 bad usage or
configuration.
)";

/// The parsed command line.
struct Request {
  bool help = false;
  bool version = false;
  std::vector<Setting> settings;
};

bool IsOption(const std::string& argument) {
  return argument.starts_with('-');
}

Request ParseRequest(std::span<const std::string> arguments) {
  Request request;
  for (const std::string& argument : arguments) {
    request.help |= argument == "-h" || argument == "--help";
    request.version |= argument == "-V" || argument == "--version";
  }
  if (request.help || request.version) return request;
  for (const std::string& argument : arguments) {
    if (IsOption(argument)) throw ConfigError(fmt::format("argument '{}': no such option", argument));
  }
  if (arguments.empty()) throw ConfigError("expected a configuration file or key=value arguments");
  request.settings = ReadSettings(arguments);
  return request;
}

void RunTask(const Parameters& parameters, Communicator& job) {
  switch (parameters.task) {
    case Task::kTrain:
      return Train(parameters, job);
    case Task::kPredict:
      return Predict(parameters, job);
    case Task::kDump:
      return Dump(parameters, job);
  }
}

/// Prefix of error messages; it names the rank, since all workers of a job write to the same terminal.
std::string who = "xgb-train";

void Run(const Parameters& parameters) {
  ConfigureLog(parameters.verbosity);
  Communicator job = Communicator::Join();
  if (job.Size() > 1) who = fmt::format("xgb-train (rank {} of {})", job.Rank(), job.Size());
  RunTask(parameters, job);
  job.Leave();
}

int Main(std::span<const std::string> arguments) {
  const Request request = ParseRequest(arguments);
  if (request.help) {
    fmt::print("{}{}{}", kUsage, DescribeParameters(), kNotes);
  } else if (request.version) {
    fmt::print("xgb-train (Warren) " WARREN_VERSION " with XGBoost {}\n", XgboostVersion());
  } else {
    Run(MakeParameters(request.settings));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  RemovePageFoldersOnSignals();
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return Main(arguments);
  } catch (const ConfigError& error) {
    fmt::print(stderr, "{}: {}\nxgb-train --help explains the configuration.\n", who, error.what());
    return kBadUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", who, error.what());
    return kRunFailed;
  }
}
