// histgbt: trains gradient boosted trees with rabit, from text to a model that XGBoost loads. It runs alone
// or as one worker of a job started by dmlc-submit.
#include <fmt/format.h>
#include <rabit/rabit.h>

#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "examples/histgbt/options.h"
#include "examples/histgbt/train.h"
#include "examples/xgboost/xgb_train/config.h"

namespace {

using namespace warren::histgbt;
using warren::xgb_train::ConfigError;

constexpr int kRunFailed = 1;
constexpr int kBadUsage = 2;

constexpr const char* kUsage =
    R"(usage: histgbt [-h | --help] [-V | --version] [CONFIG] [key=value ...]

Trains gradient boosted trees on histograms, and saves a model that XGBoost loads. CONFIG holds lines of
`key = value`; arguments override it.

    histgbt data=train.libsvm eval[test]=test.libsvm objective=binary:logistic eval_metric=auc
    dmlc-submit --num-workers 4 --local-num-attempt 3 histgbt data=train.libsvm ...

The same data and options give the same model, bit for bit, with any number of workers and threads.

Options, with their defaults in brackets:

)";

constexpr const char* kNotes = R"(
Exit code: 0 done; 1 something failed while running (data, files, the job); 2 bad usage or configuration.
)";

/// Prefix of error messages; it names the rank, since all workers of a job write to the same terminal.
std::string who = "histgbt";

int Main(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "-h" || argument == "--help") {
      fmt::print("{}{}{}", kUsage, DescribeOptions(), kNotes);
      return 0;
    }
    if (argument == "-V" || argument == "--version") {
      fmt::print("histgbt (Warren) " WARREN_VERSION "\n");
      return 0;
    }
    if (argument.starts_with('-')) throw ConfigError(fmt::format("argument '{}': no such option", argument));
  }
  const Options options = MakeOptions(warren::xgb_train::ReadSettings(arguments));
  rabit::Init(0, nullptr);
  if (rabit::GetWorldSize() > 1)
    who = fmt::format("histgbt (rank {} of {})", rabit::GetRank(), rabit::GetWorldSize());
  Train(options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return Main(arguments);
  } catch (const ConfigError& error) {
    fmt::print(stderr, "{}: {}\nhistgbt --help explains the options.\n", who, error.what());
    return kBadUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", who, error.what());
    return kRunFailed;
  }
}
