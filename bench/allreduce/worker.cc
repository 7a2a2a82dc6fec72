#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "bench/allreduce/conducted.h"
#include "bench/allreduce/measure.h"
#include "bench/allreduce/world.h"

namespace warren::bench {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitWrongResult = 3;

void Print(const Case& what, const std::vector<double>& seconds) {
  fmt::print("{{\"collective\": \"{}\", \"bytes\": {}, \"seconds\": [{:.6g}]}}\n", Name(what.collective),
             what.bytes, fmt::join(seconds, ", "));
  std::fflush(stdout);
}

/// Exits immediately: an orderly exit could wait for the other ranks, which wait for this one.
[[noreturn]] void Abandon(const char* program, const std::exception& error, int exit_code) {
  fmt::print(stderr, "{}: {}\n", program, error.what());
  std::fflush(stderr);
  std::_Exit(exit_code);
}

}  // namespace

int RunWorker(int argc, char** argv, const std::function<std::unique_ptr<World>()>& join) {
  CLI::App app("One rank of a world in which collectives are timed; bench/compare starts it.");
  std::vector<std::string> words;
  Effort effort;
  std::string conductor;
  app.add_option("cases", words, "what to time, such as allreduce:4096 (bytes)");
  app.add_option("--conductor", conductor, "the Unix socket of the process that says what to time, and when");
  app.add_option("--samples", effort.samples, "samples of each case")->capture_default_str();
  app.add_option("--least-samples", effort.least_samples, "at least this many, even when the time is up")
      ->capture_default_str();
  app.add_option("--limit", effort.limit_s, "seconds for a case")->capture_default_str();
  app.add_option("--block", effort.block_s, "seconds that the operations of a sample take")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  try {
    std::vector<Case> cases;
    cases.reserve(words.size());
    for (const std::string& word : words) cases.push_back(ParseCase(word));
    const std::unique_ptr<World> world = join();
    if (!conductor.empty()) ObeyConductor(*world, conductor);
    for (const Case& what : cases) {
      const std::vector<double> seconds = Measure(*world, what, effort);
      if (world->rank() == 0) Print(what, seconds);
    }
    world->Barrier();
  } catch (const WrongResult& error) {
    Abandon(argv[0], error, kExitWrongResult);
  } catch (const std::exception& error) {
    Abandon(argv[0], error, kExitFailed);
  }
  return 0;
}

}  // namespace warren::bench
