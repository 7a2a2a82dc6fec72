// rabit-data: inspects, validates, converts and shards data sets.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cli/parse.h"
#include "data/rabit_data/commands.h"
#include "data/text/format.h"
#include "data/text/registry.h"
#include "data/uri.h"

namespace {

using namespace warren::data;

constexpr int kBadData = 1;
constexpr int kBadUsage = 2;
constexpr int kMostThreads = 1024;

void AddShare(CLI::App& command, Arguments& arguments) {
  command.add_option("--part", arguments.share.index, "only this part, counted from 0")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--parts", arguments.share.count, "number of parts of --part")
      ->check(CLI::PositiveNumber);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Inspect, validate, convert and shard data sets of text.", "rabit-data");
  app.require_subcommand(1);
  std::vector<std::string_view> formats;
  for (const TextFormat* const format : TextFormats()) formats.push_back(format->name);
  app.footer(fmt::format(
      "A data set is path[;path...][?key=value[&key=value...]][#cache]: files, folders, patterns, - for standard input,\nplain or compressed (gzip, zstd, bzip2, xz).\n"
      "Formats: {}.\nKeys: {}.",
      fmt::join(formats, ", "), fmt::join(DataUriKeys(), ", ")));
  Arguments arguments;

  CLI::App* const inspect =
      app.add_subcommand("inspect", "show a data set's rows, columns, labels and queries");
  CLI::App* const validate =
      app.add_subcommand("validate", "list every error that prevents loading; exit code 1 if there is any");
  CLI::App* const convert =
      app.add_subcommand("convert", "write the rows as LibSVM text or as a binary cache");
  CLI::App* const shard = app.add_subcommand("shard", "split the data set into files; rows stay as they are");
  for (CLI::App* const command : {inspect, validate, convert, shard}) {
    command->add_option("data", arguments.uri, "the data set")->required();
    command->add_option("--threads", arguments.threads, "parser threads; 0: one per core")
        ->check(CLI::Range(0, kMostThreads));
  }
  for (CLI::App* const command : {inspect, validate, convert}) AddShare(*command, arguments);
  validate->add_option("--most", arguments.most_errors, "bad rows to show")->check(CLI::PositiveNumber);
  convert->add_option("output", arguments.output, "the file to write; - is standard output (text only)")
      ->required();
  convert->add_option("--to", arguments.to, "libsvm or cache")->check(CLI::IsMember({"libsvm", "cache"}));
  shard->add_option("parts", arguments.parts, "number of parts")->required()->check(CLI::PositiveNumber);
  shard->add_option("output", arguments.output, "names are <output>.part<k>-of-<n>")->required();
  app.set_version_flag("-V,--version", "rabit-data (Warren) " WARREN_VERSION);

  const int parsed = warren::cli::ParseOrExplain(app, "rabit-data", argc, argv);
  if (parsed >= 0) return parsed;
  try {
    if (arguments.share.index >= arguments.share.count) {
      fmt::print(stderr, "rabit-data: --part {} of --parts {}: parts count from 0\n", arguments.share.index,
                 arguments.share.count);
      return kBadUsage;
    }
    const int code = inspect->parsed()    ? Inspect(arguments)
                     : validate->parsed() ? Validate(arguments)
                     : convert->parsed()  ? Convert(arguments)
                                          : WriteShards(arguments);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw std::runtime_error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    }
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rabit-data: {}\n", error.what());
    return kBadData;
  }
}
