// make_libsvm: writes seeded LibSVM data of any size, with the same bytes on every machine, or the same rows
// as binary numbers for programs that do not read text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "cli/parse.h"
#include "data/cache/atomic_file.h"
#include "examples/make_libsvm/generator.h"

namespace {

using warren::AtomicFile;
using namespace warren::make_libsvm;

enum class Format { kText, kFloats };

void Write(const Options& options, Format format, const std::string& output) {
  constexpr size_t kFlushBytes = 1 << 20;
  AtomicFile file = output == "-" ? AtomicFile::StandardOutput() : AtomicFile(output);
  Generator generator(options);
  std::string text;
  std::vector<float> numbers;
  for (uint64_t row = options.first_row; row < options.first_row + options.rows; ++row) {
    if (format == Format::kText) {
      generator.AppendRow(row, text);
    } else {
      numbers.clear();
      generator.AppendNumbers(row, numbers);
      text.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    }
    if (text.size() < kFlushBytes) continue;
    file.Write(text);
    text.clear();
  }
  file.Write(text);
  file.Commit();
}

const std::map<std::string, Task> kTasks{{"binary", Task::kBinary},
                                         {"regression", Task::kRegression},
                                         {"ranking", Task::kRanking},
                                         {"multiclass", Task::kMulticlass}};

const std::map<std::string, Format> kFormats{{"libsvm", Format::kText}, {"float32", Format::kFloats}};

void AddOptions(CLI::App& app, Options& options, Format& format, std::string& output) {
  app.add_option("--task", options.task, "type of the labels")->transform(CLI::CheckedTransformer(kTasks));
  app.add_option("--rows", options.rows, "number of rows")->capture_default_str();
  app.add_option("--first-row", options.first_row,
                 "first row written; train on one range and test on another of the same seed")
      ->capture_default_str();
  app.add_option("--features", options.features, "number of features; indices count from 1")
      ->capture_default_str();
  app.add_option("--density", options.density, "share of the features that a row has, 0 to 1")
      ->capture_default_str();
  app.add_flag("--binary-features", options.binary_features,
               "make all values 1, like one-hot encoded categories");
  app.add_option("--noise", options.noise, "noise in units of the signal")->capture_default_str();
  app.add_option("--query-size", options.query_size, "rows per query (ranking)")->capture_default_str();
  app.add_option("--classes", options.classes, "number of classes (multiclass)")->capture_default_str();
  app.add_option("--seed", options.seed, "random seed; the same seed gives the same file")
      ->capture_default_str();
  app.add_option(
         "--format", format,
         "libsvm, or float32: each row's label and all feature values in the machine's byte order, NaN if missing; without queries")
      ->transform(CLI::CheckedTransformer(kFormats));
  app.add_option("--output", output, "file to write, - is standard output")->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Generates learnable LibSVM data; a seed gives the same bytes on any machine.");
  app.set_version_flag("-V,--version", "make_libsvm (Warren) " WARREN_VERSION);
  Options options;
  Format format = Format::kText;
  std::string output = "-";
  AddOptions(app, options, format, output);
  const int parsed = warren::cli::ParseOrExplain(app, "make_libsvm", argc, argv);
  if (parsed >= 0) return parsed;
  try {
    Validate(options);
    Write(options, format, output);
  } catch (const std::exception& error) {
    fmt::print(stderr, "make_libsvm: {}\n", error.what());
    return 1;
  }
}
