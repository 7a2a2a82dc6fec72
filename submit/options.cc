// Reading the command line.
#include "submit/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "submit/cluster/clusters.h"
#include "submit/monitor/web_request.h"

namespace warren::submit {
namespace {

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Option* FindOption(std::string_view name) {
  const auto& table = OptionTable();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Option& o) {
    return o.name == name || Contains(o.other_names, name);
  });
  return found == table.end() ? nullptr : &*found;
}

std::string_view WithoutDashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

/// Levenshtein's distance: insertions, deletions and replacements from `a` to `b`.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The option a user most likely meant: one that goes on where `name` ends, else the fewest edits away.
std::string_view NearestOption(std::string_view name) {
  const std::string_view typed = WithoutDashes(name);
  for (const Option& option : OptionTable()) {
    if (!typed.empty() && WithoutDashes(option.name).substr(0, typed.size()) == typed) return option.name;
  }
  const auto& table = OptionTable();
  return std::min_element(table.begin(), table.end(),
                          [&](const Option& a, const Option& b) {
                            return EditDistance(WithoutDashes(a.name), typed) <
                                   EditDistance(WithoutDashes(b.name), typed);
                          })
      ->name;
}

/// The options of a command line, each word as the parser takes it, and the command behind them.
struct Split {
  std::vector<std::string> options;
  std::vector<std::string> command;
};

/// Finds where the command begins. "--name value" becomes "--name=value", so that no value is taken for an
/// option.
Split SplitCommandLine(const std::vector<std::string>& arguments) {
  Split split;
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    const std::size_t equals = word.find('=');
    const std::string typed = word.substr(0, equals);
    const Option* option = FindOption(typed);
    if (option == nullptr) {
      throw UsageError(fmt::format("unknown option '{}'; the nearest is {}", typed, NearestOption(typed)));
    }
    const std::string name(option->name);
    if (option->value.empty()) {
      if (equals != std::string::npos) throw UsageError(fmt::format("{} takes no value", name));
      split.options.push_back(name);
      continue;
    }
    if (option->value_is_optional) {
      // The word behind it may be the command.
      split.options.push_back(name);
      split.options.push_back(equals == std::string::npos ? std::string() : word.substr(equals + 1));
      continue;
    }
    if (equals == std::string::npos && ++i == arguments.size()) {
      throw UsageError(fmt::format("{} needs a value: {} {}", name, name, option->value));
    }
    const std::string value = equals == std::string::npos ? arguments[i] : word.substr(equals + 1);
    if (value.empty()) {
      split.options.insert(split.options.end(), {name, value});
    } else {
      split.options.push_back(fmt::format("{}={}", name, value));
    }
  }
  split.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(std::min(i, arguments.size())),
                       arguments.end());
  return split;
}

void Store(const Option& option, Options& options, const std::string& value) {
  if (option.store == nullptr) {
    options.texts[std::string(option.name)].push_back(value);
    return;
  }
  try {
    option.store(options, value);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("{}: {}", option.name, error.what()));
  }
}

/// Runs CLI11 over the words and stores what it found. Returns the names of the options that were given.
std::vector<std::string_view> StoreGiven(std::vector<std::string> words, Options& options) {
  CLI::App app;
  app.set_help_flag();
  std::vector<std::pair<const Option*, CLI::Option*>> parsed;
  for (const Option& option : OptionTable()) {
    const std::string name(option.name);
    CLI::Option* made = option.value.empty() ? app.add_flag(name) : app.add_option(name)->expected(1);
    if (!option.value.empty()) {
      made->multi_option_policy(option.repeatable ? CLI::MultiOptionPolicy::TakeAll
                                                  : CLI::MultiOptionPolicy::TakeLast);
    }
    parsed.emplace_back(&option, made);
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes words from the end
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  std::vector<std::string_view> given;
  for (const auto& [option, made] : parsed) {
    if (made->count() == 0) continue;
    given.push_back(option->name);
    const std::vector<std::string>& values = made->results();
    const std::size_t first = option->repeatable ? 0 : values.size() - 1;  // the last one counts
    for (std::size_t i = first; i < values.size(); ++i) Store(*option, options, values[i]);
  }
  return given;
}

void TakeClusterFromEnvironment(Options& options) {
  const char* name = std::getenv("DMLC_SUBMIT_CLUSTER");
  if (options.cluster_was_chosen || name == nullptr || *name == '\0') return;
  try {
    FindOption("--cluster")->store(options, name);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("DMLC_SUBMIT_CLUSTER in the environment: {}", error.what()));
  }
}

/// A word of the command that looks like the option `name`: the user may have meant it for dmlc-submit.
bool StandsInCommand(const Options& options, std::string_view name) {
  return std::any_of(options.command.begin(), options.command.end(), [&](const std::string& word) {
    return word == name || word.rfind(fmt::format("{}=", name), 0) == 0;
  });
}

bool IsNumber(const std::string& word) {
  return word.find_first_not_of("0123456789") == std::string::npos;
}

void CheckWhole(Options& options, const std::vector<std::string_view>& given) {
  if (!Contains(given, "--num-workers")) {
    throw UsageError(
        StandsInCommand(options, "--num-workers")
            ? "--num-workers stands behind the command and belongs to it; options of dmlc-submit "
              "go before the command"
            : "--num-workers N is missing: how many workers to start");
  }
  if (options.command.empty()) {
    throw UsageError("the command to run is missing: dmlc-submit [options] command [arguments...]");
  }
  if (options.command.front().empty()) throw UsageError("the command to run is an empty word");
  if (options.mode == Mode::kMpi && std::exchange(options.num_servers, 0) > 0)
    options.ignored.emplace_back("--num-servers");
  if (Contains(given, "--dashboard") && IsNumber(options.command.front())) {
    throw UsageError(
        fmt::format("--dashboard takes its port behind a '=': --dashboard={}", options.command.front()));
  }
  // Without a value the page goes where metrics are, but not to other hosts with them.
  const bool metrics_stay_here = options.metrics && NamesLoopback(ToText(*options.metrics));
  if (options.dashboard == WebAddress{} && metrics_stay_here) options.dashboard = options.metrics;
  options.port_was_chosen = Contains(given, "--port");
  if (!Contains(given, "--port-end")) options.port_end = std::max(options.port_end, options.port);
  if (options.port_end < options.port) {
    throw UsageError(fmt::format("--port-end {} is below --port {}", options.port_end, options.port));
  }
  if (options.tls && options.num_servers > 0) {
    throw UsageError(
        "--tls: parameter servers (--num-servers) have connections of their own, which nothing here "
        "encrypts");
  }
  const ClusterEntry& cluster = ClusterOf(options);
  if (options.bind.value_or(Bind::kNone) != Bind::kNone && !Heeds(cluster, *FindOption("--bind"))) {
    throw UsageError(fmt::format("--bind {}: --cluster {} does not bind processes{}{}",
                                 BindName(*options.bind), cluster.name,
                                 cluster.bound_by.empty() ? "" : "; use ", cluster.bound_by));
  }
  if (cluster.check) cluster.check(options);
}

}  // namespace

Options ParseOptions(const std::vector<std::string>& arguments) {
  Split split = SplitCommandLine(arguments);
  Options options;
  options.command = std::move(split.command);
  const std::vector<std::string_view> given = StoreGiven(std::move(split.options), options);
  if (options.request != Request::kRun) return options;
  TakeClusterFromEnvironment(options);
  CheckWhole(options, given);
  const ClusterEntry& cluster = ClusterOf(options);
  for (const std::string_view name : given) {
    // A parameter-server job has no rabit tracker.
    const bool for_tracker = options.num_servers > 0 && (name == "--timeout" || name == "--sortby");
    const bool in_vain = cluster.ignores && cluster.ignores(options, name);
    if (for_tracker || in_vain || !Heeds(cluster, *FindOption(name))) options.ignored.emplace_back(name);
  }
  return options;
}

}  // namespace warren::submit
