#include "submit/options/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/arguments.h"
#include "submit/monitor/web_request.h"
#include "submit/options/job_file.h"
#include "submit/options/value_hint.h"

namespace warren::submit {
namespace {

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The reader of command lines, with all options in table order.
cli::ArgumentReader ReaderOf(const OptionTable& table) {
  std::vector<cli::OptionForm> forms;
  for (const Option& option : table.rows()) {
    cli::OptionForm form;
    form.names.emplace_back(option.name);
    form.names.insert(form.names.end(), option.other_names.begin(), option.other_names.end());
    form.value = option.value.empty()       ? cli::ValueUse::kNone
                 : option.value_is_optional ? cli::ValueUse::kOptional
                                            : cli::ValueUse::kRequired;
    form.value_name = option.value;
    form.is_number = HintFor(option).kind == ValueKind::kInteger;
    forms.push_back(std::move(form));
  }
  return cli::ArgumentReader(std::move(forms));
}

void Store(const Option& option, const cli::GivenOption& given, Options& options) {
  if (option.store == nullptr) {
    options.texts[std::string(option.name)].push_back(given.value);
    return;
  }
  try {
    option.store(options, given.value);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("{}: {}", given.source.empty() ? option.name : given.source, error.what()));
  }
}

/// Stores the values in table order. Of several values of an option that is not repeatable, only the last is
/// stored. Returns the names of the options that were given.
std::vector<std::string_view> StoreGiven(const OptionTable& table, const std::vector<cli::GivenOption>& given,
                                         Options& options) {
  std::vector<std::vector<cli::GivenOption>> values(table.rows().size());
  for (const cli::GivenOption& one : given) values[one.form].push_back(one);
  std::vector<std::string_view> names;
  for (std::size_t place = 0; place < values.size(); ++place) {
    if (values[place].empty()) continue;
    const Option& option = table.rows()[place];
    names.push_back(option.name);
    const std::size_t first = option.repeatable ? 0 : values[place].size() - 1;
    for (std::size_t i = first; i < values[place].size(); ++i) Store(option, values[place][i], options);
  }
  return names;
}

void TakeClusterFromEnvironment(const OptionTable& table, Options& options) {
  const char* name = std::getenv("DMLC_SUBMIT_CLUSTER");
  if (options.cluster_was_chosen || name == nullptr || *name == '\0') return;
  try {
    table.Find("--cluster")->store(options, name);
    options.cluster_is_from_environment = true;
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("DMLC_SUBMIT_CLUSTER in the environment: {}", error.what()));
  }
}

/// If the job's command contains a name of --num-workers, such as -n, returns that name, since the user may
/// have meant it for dmlc-submit. Otherwise returns an empty string.
std::string NumWorkersInCommand(const OptionTable& table, const Options& options) {
  const Option& option = *table.Find("--num-workers");
  for (const std::string& word : options.command) {
    const std::string name = word.substr(0, word.find('='));
    if (name == option.name || Contains(option.other_names, name)) return name;
  }
  return {};
}

bool IsNumber(const std::string& word) {
  return word.find_first_not_of("0123456789") == std::string::npos;
}

/// Checks the options of an elastic job, and that a job of a fixed number of workers has none of them.
void CheckElastic(const ClusterFacts& cluster, const std::vector<std::string_view>& given,
                  const Options& options) {
  if (!options.min_workers) {
    for (const char* name : {"--replace-within", "--preemption-signal", "--preemption-notice"}) {
      if (!Contains(given, name)) continue;
      throw UsageError(fmt::format(
          "{} needs --num-workers MIN:MAX: a job of a fixed number of workers goes on without none", name));
    }
    return;
  }
  const auto refuse = [&](std::string_view why) {
    throw UsageError(fmt::format("--num-workers {}:{}: {}", *options.min_workers, options.num_workers, why));
  };
  if (!cluster.may_lose_workers) {
    refuse(fmt::format("--cluster {} cannot go on without a worker: give one number, and --max-restarts",
                       cluster.name));
  }
  if (options.num_servers > 0) refuse("parameter servers (--num-servers) cannot go on without a worker");
  if (options.no_tracker) refuse("needs a tracker, without --no-tracker");
  if (options.num_restarts > 0)
    refuse("workers are started again as often as their host allows, without --local-num-attempt");
}

void CheckWhole(const OptionTable& table, const std::vector<std::string_view>& given, Options& options) {
  if (!Contains(given, "--num-workers")) {
    const std::string in_command = NumWorkersInCommand(table, options);
    throw UsageError(
        in_command.empty()
            ? "--num-workers N is missing: the number of workers to start"
            : fmt::format(
                  "--num-workers N is missing: the {} after the command belongs to the command; options of dmlc-submit go before it",
                  in_command));
  }
  if (options.command.empty()) {
    throw UsageError("the command to run is missing: dmlc-submit [options] command [arguments...]");
  }
  if (options.command.front().empty()) throw UsageError("the command to run is an empty word");
  if (options.mode == Mode::kMpi && std::exchange(options.num_servers, 0) > 0)
    options.ignored.emplace_back("--num-servers");
  if (Contains(given, "--dashboard") && IsNumber(options.command.front())) {
    throw UsageError(
        fmt::format("--dashboard takes its port after '=': --dashboard={}", options.command.front()));
  }
  // If --dashboard has no value and the metrics are served on this machine only, the page is served at their
  // address.
  const bool metrics_stay_here = options.metrics && NamesLoopback(ToText(*options.metrics));
  if (options.dashboard == WebAddress{} && metrics_stay_here) options.dashboard = options.metrics;
  if (options.detach && options.dry_run) {
    throw UsageError("--detach: with --dry-run there is no job that could continue; give one of the two");
  }
  if (options.detach && options.until_stdin_closes) {
    throw UsageError(
        "--detach: with --until-stdin-closes the job would end at once, because a detached job has no standard input; give one of the two");
  }
  options.port_was_chosen = Contains(given, "--port");
  options.port_end_was_chosen = Contains(given, "--port-end");
  if (!options.port_end_was_chosen) options.port_end = std::max(options.port_end, options.port);
  if (options.port_end < options.port) {
    throw UsageError(fmt::format("--port-end {} is below --port {}", options.port_end, options.port));
  }
  if (options.tls && options.num_servers > 0) {
    throw UsageError(
        "--tls: parameter servers (--num-servers) use their own connections, which Warren does not encrypt");
  }
  const ClusterFacts& cluster = FindCluster(table.clusters(), options.cluster);
  CheckElastic(cluster, given, options);
  if (options.bind.value_or(Bind::kNone) != Bind::kNone && !Heeds(cluster, *table.Find("--bind"))) {
    throw UsageError(fmt::format("--bind {}: --cluster {} does not bind processes{}{}",
                                 BindName(*options.bind), cluster.name,
                                 cluster.bound_by.empty() ? "" : "; use ", cluster.bound_by));
  }
  if (cluster.check) cluster.check(options);
}

JobDescription ReadCommandLine(const OptionTable& table, const std::vector<std::string>& arguments) {
  JobDescription job;
  std::size_t command_begin = 0;
  job.given = ReaderOf(table).ReadOptions(arguments, command_begin);
  if (command_begin < arguments.size() && arguments[command_begin] == "--") ++command_begin;
  job.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(command_begin), arguments.end());
  return job;
}

std::string Content(const std::string& path,
                    const std::function<std::string(const std::string& path)>& read_file) {
  try {
    return read_file(path);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("--job: {}", error.what()));
  }
}

/// Whether the request needs no job, and thus no job file.
bool NeedsNoJob(Request request) {
  return request != Request::kRun && request != Request::kSave && request != Request::kShowHosts;
}

/// Completes and checks the options of a request that runs or saves a job. `given`: the names of the options
/// that were given.
void Complete(const OptionTable& table, const std::vector<std::string_view>& given, Options& options) {
  TakeClusterFromEnvironment(table, options);
  try {
    CheckWhole(table, given, options);
  } catch (const UsageError& error) {
    if (options.job_file.empty()) throw;
    throw UsageError(
        fmt::format("{} (on the command line and in {} together)", error.what(), options.job_file));
  }
  const ClusterFacts& cluster = FindCluster(table.clusters(), options.cluster);
  for (const std::string_view name : given) {
    // A parameter-server job has no rabit tracker, either.
    const bool has_tracker = options.num_servers == 0 && !options.no_tracker;
    const bool for_tracker = name == "--timeout" || name == "--sortby" || name == "--admit";
    const bool in_vain = cluster.ignores && cluster.ignores(options, name);
    if ((for_tracker && !has_tracker) || in_vain || !Heeds(cluster, *table.Find(name)))
      options.ignored.emplace_back(name);
  }
}

}  // namespace

Options ParseOptions(const OptionTable& table, const std::vector<std::string>& arguments,
                     const std::function<std::string(const std::string& path)>& read_file) {
  JobDescription job = ReadCommandLine(table, arguments);
  Options options;
  std::vector<std::string_view> given = StoreGiven(table, job.given, options);
  if (NeedsNoJob(options.request)) return options;
  if (!options.job_file.empty()) {
    job = Merged(ReadJobFile(table, Content(options.job_file, read_file), options.job_file), job);
    options = {};
    given = StoreGiven(table, job.given, options);
  }
  options.command = job.command;
  if (options.request == Request::kShowHosts) return options;
  Complete(table, given, options);
  if (options.request == Request::kSave) options.saved_job = WriteJobFile(table, job);
  return options;
}

}  // namespace warren::submit
