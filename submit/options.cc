#include "submit/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <numeric>

#include "wire/classic.h"

namespace warren::submit {
namespace {

constexpr std::array<std::pair<std::string_view, ClusterKind>, 8> kClusters = {{
    {"local", kLocal},
    {"ssh", kSsh},
    {"mpi", kMpi},
    {"slurm", kSlurm},
    {"sge", kSge},
    {"yarn", kYarn},
    {"mesos", kMesos},
    {"kubernetes", kKubernetes},
}};
constexpr unsigned kBatch = kMpi | kSlurm | kSge | kYarn | kMesos | kKubernetes;
constexpr unsigned kShipping = kLocal | kSsh | kMpi | kSge | kYarn | kMesos;

constexpr std::string_view kJobGroup = "The job";
constexpr std::string_view kTrackerGroup = "Tracker";
constexpr std::string_view kOutputGroup = "Output and logs";
constexpr std::string_view kResourceGroup = "Resources on a cluster";
constexpr std::string_view kOneClusterGroup = "One kind of cluster only";
constexpr std::string_view kHelpGroup = "Help";

constexpr int kMaxWorkers = wire::classic::kMaxWorldSize;
/// Enough for any machine, small enough that sums of milliseconds and bytes stay in range.
constexpr int kMaxCount = 1'000'000;
constexpr double kMaxTimeoutSeconds = 1e8;

// --- how values are stored -------------------------------------------------------------------------------

int ParseCount(const std::string& text, int least, int most) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (error == std::errc::result_out_of_range || (whole && value > most)) {
    throw std::runtime_error(fmt::format("'{}' is too big, at most {} is possible", text, most));
  }
  if (!whole) throw std::runtime_error(fmt::format("'{}' is not a whole number", text));
  if (value < least) {
    throw std::runtime_error(fmt::format("'{}' is too small, at least {} is needed", text, least));
  }
  return static_cast<int>(value);
}

template <auto member>
void Text(Options& options, const std::string& value) {
  options.*member = value;
}

template <auto member>
void TextList(Options& options, const std::string& value) {
  (options.*member).push_back(value);
}

template <auto member, int least, int most>
void Count(Options& options, const std::string& value) {
  options.*member =
      static_cast<std::remove_reference_t<decltype(options.*member)>>(ParseCount(value, least, most));
}

template <auto member>
void Memory(Options& options, const std::string& value) {
  options.*member = ParseMemorySize(value);
}

template <Request request>
void Ask(Options& options, const std::string&) {
  options.request = request;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The meaning of `text` among `choices`; throws an error that lists them.
template <typename Value, std::size_t kSize>
Value Choose(const std::string& text, const std::array<std::pair<std::string_view, Value>, kSize>& choices) {
  const std::string wanted = Lower(text);
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == wanted) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw std::runtime_error(fmt::format("'{}' is none of {}", text, names));
}

void StoreCluster(Options& options, const std::string& value) {
  options.cluster = Choose(value, kClusters);
  options.cluster_was_chosen = true;
}

void StoreAutoFileCache(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, bool>, 6> kChoices = {
      {{"on", true}, {"off", false}, {"true", true}, {"false", false}, {"1", true}, {"0", false}}};
  options.auto_file_cache = Choose(value, kChoices);
}

void StoreLogLevel(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, bool>, 2> kChoices = {{{"info", false}, {"debug", true}}};
  options.debug_log = Choose(value, kChoices);
}

void StoreSortBy(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, tracker::SortBy>, 2> kChoices = {
      {{"host", tracker::SortBy::kHost}, {"task", tracker::SortBy::kTask}}};
  options.sort_by = Choose(value, kChoices);
}

void StoreColor(Options& options, const std::string& value) {
  constexpr std::array<std::pair<std::string_view, ColorChoice>, 3> kChoices = {
      {{"auto", ColorChoice::kAuto}, {"always", ColorChoice::kAlways}, {"never", ColorChoice::kNever}}};
  options.color = Choose(value, kChoices);
}

void StoreTimeout(Options& options, const std::string& value) {
  double seconds = 0;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), seconds, std::chars_format::fixed);
  if (error != std::errc{} || end != value.data() + value.size() || !(seconds >= 0)) {
    throw std::runtime_error(fmt::format("'{}' is not a number of seconds (0: wait for ever)", value));
  }
  if (seconds > kMaxTimeoutSeconds) {
    throw std::runtime_error(fmt::format("'{}' is too big; 0 waits for ever", value));
  }
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  // Less than a millisecond was asked for, not "for ever".
  if (seconds > 0 && options.timeout.count() == 0) options.timeout = std::chrono::milliseconds{1};
}

void StoreDryRun(Options& options, const std::string&) {
  options.dry_run = true;
}

/// KEY=VALUE as it is; a KEY alone takes the value it has now.
void StoreEnvironment(Options& options, const std::string& value) {
  const std::size_t equals = value.find('=');
  if (value.empty() || equals == 0) {
    throw std::runtime_error(fmt::format("'{}' is neither KEY=VALUE nor KEY", value));
  }
  if (equals == std::string::npos) {
    const char* current = std::getenv(value.c_str());
    if (current == nullptr) {
      throw std::runtime_error(fmt::format(
          "{} is not set in the environment; write --env {}=VALUE to give it a value", value, value));
    }
    options.environment.emplace_back(value, current);
    return;
  }
  options.environment.emplace_back(value.substr(0, equals), value.substr(equals + 1));
}

// --- reading the command line ----------------------------------------------------------------------------

const Option* FindOption(std::string_view name) {
  const auto& table = OptionTable();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Option& o) { return o.name == name; });
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
    const std::string name = word.substr(0, equals);
    const Option* option = FindOption(name);
    if (option == nullptr) {
      throw UsageError(fmt::format("unknown option '{}'; the nearest is {}", name, NearestOption(name)));
    }
    if (option->value.empty()) {
      if (equals != std::string::npos) throw UsageError(fmt::format("{} takes no value", name));
      split.options.push_back(name);
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
    StoreCluster(options, name);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("DMLC_SUBMIT_CLUSTER in the environment: {}", error.what()));
  }
}

bool Contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A word of the command that looks like the option `name`: the user may have meant it for dmlc-submit.
bool StandsInCommand(const Options& options, std::string_view name) {
  return std::any_of(options.command.begin(), options.command.end(), [&](const std::string& word) {
    return word == name || word.rfind(fmt::format("{}=", name), 0) == 0;
  });
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
  if (!Contains(given, "--port-end")) options.port_end = std::max(options.port_end, options.port);
  if (options.port_end < options.port) {
    throw UsageError(fmt::format("--port-end {} is below --port {}", options.port_end, options.port));
  }
}

// --- showing the table -----------------------------------------------------------------------------------

std::string ClusterNames(unsigned clusters) {
  if (clusters == kEveryCluster) return "all";
  std::string names;
  for (const auto& [name, kind] : kClusters) {
    if ((clusters & kind) != 0) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return names;
}

std::string Usage(const Option& option) {
  return option.value.empty() ? std::string(option.name) : fmt::format("{} {}", option.name, option.value);
}

std::string HelpOf(const Option& option) {
  std::string help(option.help);
  if (!option.default_value.empty()) help += fmt::format(" Default: {}.", option.default_value);
  if (option.repeatable) help += " May be given several times.";
  return help;
}

/// `text` in lines of at most `width` characters, each after the first indented.
std::string Wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > 0 && column + 1 + word.size() > width) {
      out += fmt::format("\n{:{}}", "", indent);
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return out;
}

/// Calls `heading` at each new group and `row` for each option, in the order of the table.
template <typename Heading, typename Row>
void ForEachRow(const Heading& heading, const Row& row) {
  std::string_view group;
  for (const Option& option : OptionTable()) {
    if (option.group != group) heading(group = option.group);
    row(option);
  }
}

std::string EscapedForMarkdown(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string_view ClusterName(ClusterKind cluster) {
  const auto* const found =
      std::find_if(kClusters.begin(), kClusters.end(), [&](const auto& c) { return c.second == cluster; });
  return found == kClusters.end() ? "unknown" : found->first;
}

const std::vector<Option>& OptionTable() {
  static const std::vector<Option> table = {
      {"--num-workers", "N", "", kJobGroup, kEveryCluster, "How many workers to start. Required.",
       Count<&Options::num_workers, 1, kMaxWorkers>},
      {"--cluster", "NAME", "$DMLC_SUBMIT_CLUSTER, else local", kJobGroup, kEveryCluster,
       "Where the processes run: local (this machine), ssh, mpi, slurm, sge, yarn, mesos or kubernetes. Only "
       "local is supported yet.",
       StoreCluster},
      {"--num-servers", "M", "0", kJobGroup, kEveryCluster,
       "How many parameter servers to start. With M > 0 the command is started once as the scheduler, M "
       "times "
       "as a server and N times as a worker; DMLC_ROLE tells them apart.",
       Count<&Options::num_servers, 0, kMaxWorkers>},
      {"--local-num-attempt", "K", "0", kJobGroup, kLocal,
       "How often a process that fails is started again before the job is given up. DMLC_NUM_ATTEMPT is 0 at "
       "its first start and counts up.",
       Count<&Options::num_restarts, 0, kMaxCount>},
      {"--max-restarts", "N", "0", kJobGroup, kEveryCluster,
       "How often the whole job is stopped and started again when a process of it fails for good or workers "
       "stay "
       "missing: for programs that go on from a model they saved, as XGBoost's do. DMLC_NUM_ATTEMPT counts "
       "up.",
       Count<&Options::max_restarts, 0, kMaxCount>},
      {"--env", "KEY=VALUE", "", kJobGroup, kEveryCluster,
       "Gives the processes an environment variable, the value exactly as written. KEY alone passes on the "
       "value it has now.",
       StoreEnvironment, true},
      {"--files", "FILE", "", kJobGroup, kShipping,
       "A file the processes need. On this machine nothing has to be copied: it is only checked to be there.",
       TextList<&Options::files>, true},
      {"--archives", "FILE", "", kJobGroup, kShipping,
       "Like --files, for an archive that is unpacked where the processes run. On this machine it is only "
       "checked to be there.",
       TextList<&Options::archives>, true},
      {"--auto-file-cache", "on|off", "on", kJobGroup, kShipping,
       "Whether files named in the command are shipped too. On this machine nothing has to be shipped.",
       StoreAutoFileCache},
      {"--dry-run", "", "", kJobGroup, kEveryCluster,
       "Prints what would be started, as shell commands, and starts nothing.", StoreDryRun},

      {"--host-ip", "IP|auto|dns", "", kTrackerGroup, kEveryCluster,
       "The address the processes are told to find the tracker at: an address or name, auto (that of the "
       "default route) or dns (this machine's full name). With --cluster local it is 127.0.0.1 unless given.",
       Text<&Options::host_ip>},
      {"--port", "P", "9091", kTrackerGroup, kEveryCluster,
       "The first port the tracker tries; 0 takes any free one. A parameter-server job's scheduler gets "
       "a free port of the same range.",
       Count<&Options::port, 0, 65535>},
      {"--port-end", "P", "9999", kTrackerGroup, kEveryCluster, "The last port the tracker tries.",
       Count<&Options::port_end, 0, 65535>},
      {"--sortby", "host|task", "host", kTrackerGroup, kEveryCluster,
       "What workers are sorted by before they get their ranks.", StoreSortBy},
      {"--timeout", "SECONDS", "1800", kTrackerGroup, kEveryCluster,
       "How long workers may be missing at the tracker before the job is given up; 0: for ever, also right "
       "for "
       "a command that never speaks to the tracker.",
       StoreTimeout},

      {"--log-dir", "DIR", "", kOutputGroup, kLocal,
       "Also keeps the output of each process in DIR/worker-0.log and so on. DIR is made when missing.",
       Text<&Options::log_dir>},
      {"--color", "auto|always|never", "auto", kOutputGroup, kEveryCluster,
       "Whether the [rank] before each line of output is coloured; auto: on a terminal.", StoreColor},
      {"--log-level", "INFO|DEBUG", "INFO", kOutputGroup, kEveryCluster,
       "How much dmlc-submit and the tracker say.", StoreLogLevel},
      {"--log-file", "FILE", "", kOutputGroup, kEveryCluster,
       "Also writes what dmlc-submit and the tracker say to FILE, with the time.", Text<&Options::log_file>},

      {"--worker-cores", "N", "1", kResourceGroup, kBatch, "Processor cores for each worker.",
       Count<&Options::worker_cores, 1, kMaxCount>},
      {"--worker-memory", "SIZE", "1g", kResourceGroup, kBatch,
       "Memory for each worker, such as 512m or 1.5g.", Memory<&Options::worker_memory_bytes>},
      {"--server-cores", "N", "1", kResourceGroup, kBatch, "Processor cores for each parameter server.",
       Count<&Options::server_cores, 1, kMaxCount>},
      {"--server-memory", "SIZE", "1g", kResourceGroup, kBatch, "Memory for each parameter server.",
       Memory<&Options::server_memory_bytes>},
      {"--jobname", "NAME", "", kResourceGroup, kBatch, "The name of the job in the cluster's queue.",
       Text<&Options::job_name>},
      {"--queue", "NAME", "default", kResourceGroup, kBatch, "The queue the job is put into.",
       Text<&Options::queue>},

      {"--host-file", "FILE", "", kOneClusterGroup, kSsh | kMpi, "The hosts to use, one a line.",
       Text<&Options::host_file>},
      {"--sync-dst-dir", "DIR", "", kOneClusterGroup, kSsh,
       "Copies the current directory to DIR on every host first.", Text<&Options::sync_dst_dir>},
      {"--sge-log-dir", "DIR", "", kOneClusterGroup, kSge, "Where Grid Engine keeps the output of the job.",
       Text<&Options::sge_log_dir>},
      {"--slurm-worker-nodes", "N", "one for each worker", kOneClusterGroup, kSlurm,
       "How many nodes the workers are spread over.", Count<&Options::slurm_worker_nodes, 1, kMaxCount>},
      {"--slurm-server-nodes", "N", "one for each server", kOneClusterGroup, kSlurm,
       "How many nodes the parameter servers are spread over.",
       Count<&Options::slurm_server_nodes, 1, kMaxCount>},
      {"--kube-namespace", "NAME", "default", kOneClusterGroup, kKubernetes, "The namespace the job runs in.",
       Text<&Options::kube_namespace>},
      {"--kube-worker-image", "IMAGE", "mxnet/python", kOneClusterGroup, kKubernetes,
       "The container image of the workers.", Text<&Options::kube_worker_image>},
      {"--kube-server-image", "IMAGE", "mxnet/python", kOneClusterGroup, kKubernetes,
       "The container image of the parameter servers.", Text<&Options::kube_server_image>},
      {"--kube-worker-template", "FILE", "", kOneClusterGroup, kKubernetes,
       "A manifest the workers' pods are made from.", Text<&Options::kube_worker_template>},
      {"--kube-server-template", "FILE", "", kOneClusterGroup, kKubernetes,
       "A manifest the parameter servers' pods are made from.", Text<&Options::kube_server_template>},
      {"--hdfs-tempdir", "DIR", "/tmp", kOneClusterGroup, kYarn, "A directory in HDFS for temporary files.",
       Text<&Options::hdfs_tempdir>},
      {"--yarn-app-classpath", "PATH", "", kOneClusterGroup, kYarn,
       "The class path of the application master, in place of the default.",
       Text<&Options::yarn_app_classpath>},
      {"--yarn-app-dir", "DIR", "", kOneClusterGroup, kYarn, "Where the application master lies.",
       Text<&Options::yarn_app_dir>},
      {"--mesos-master", "HOST:PORT", "", kOneClusterGroup, kMesos,
       "The Mesos master (Apache Mesos is retired).", Text<&Options::mesos_master>},
      {"--ship-libcxx", "DIR", "", kOneClusterGroup, kYarn,
       "A directory with a libstdc++ that is shipped to the processes.", Text<&Options::ship_libcxx>},

      {"--help", "", "", kHelpGroup, kEveryCluster, "Prints this.", Ask<Request::kHelp>},
      {"--help-markdown", "", "", kHelpGroup, kEveryCluster, "Prints docs/options.md.",
       Ask<Request::kHelpMarkdown>},
      {"--version", "", "", kHelpGroup, kEveryCluster, "Prints the version.", Ask<Request::kVersion>},
  };
  return table;
}

Options ParseOptions(const std::vector<std::string>& arguments) {
  Split split = SplitCommandLine(arguments);
  Options options;
  options.command = std::move(split.command);
  const std::vector<std::string_view> given = StoreGiven(std::move(split.options), options);
  if (options.request != Request::kRun) return options;
  TakeClusterFromEnvironment(options);
  CheckWhole(options, given);
  for (const std::string_view name : given) {
    // A parameter-server job has no rabit tracker.
    const bool for_tracker = options.num_servers > 0 && (name == "--timeout" || name == "--sortby");
    const bool for_others = (FindOption(name)->clusters & options.cluster) == 0;
    if (for_tracker || for_others) options.ignored.emplace_back(name);
  }
  return options;
}

std::uint64_t ParseMemorySize(const std::string& text) {
  const std::map<char, int> shifts = {{'k', 10}, {'m', 20}, {'g', 30}, {'t', 40}};
  const auto malformed = [&] {
    return std::runtime_error(
        fmt::format("'{}' is not a memory size: a number and one of k, m, g, t, such as 512m or 1.5g", text));
  };
  if (text.size() < 2) throw malformed();
  const auto unit = shifts.find(static_cast<char>(std::tolower(static_cast<unsigned char>(text.back()))));
  double number = 0;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  if (unit == shifts.end() || error != std::errc{} || end != last || !(number >= 0)) throw malformed();
  const double bytes = number * static_cast<double>(std::uint64_t{1} << unit->second);
  if (bytes < 1) throw std::runtime_error(fmt::format("'{}' is no memory at all", text));
  if (bytes >= static_cast<double>(std::uint64_t{1} << 60)) {
    throw std::runtime_error(fmt::format("'{}' is more memory than any machine has", text));
  }
  return static_cast<std::uint64_t>(bytes);
}

std::string HelpText() {
  constexpr std::size_t kColumn = 30;
  constexpr std::size_t kWidth = 100 - kColumn;
  std::string text =
      "Usage: dmlc-submit [options] command [arguments...]\n\n"
      "Starts a distributed job: N copies of the command that find each other through a tracker.\n"
      "The options end at the first word that is none; the command gets its arguments exactly as written.\n"
      "Example: dmlc-submit --num-workers 3 ./xgb-train train.conf max_depth=4\n";
  ForEachRow([&](std::string_view group) { text += fmt::format("\n{}:\n", group); },
             [&](const Option& option) {
               const std::string usage = Usage(option);
               text += fmt::format("  {:<{}}", usage, kColumn - 2);
               if (usage.size() + 3 > kColumn) text += fmt::format("\n{:{}}", "", kColumn);
               text += Wrapped(HelpOf(option), kWidth, kColumn) + '\n';
             });
  return text;
}

std::string HelpMarkdown() {
  std::string text =
      "# Options of dmlc-submit\n\n"
      "`dmlc-submit [options] command [arguments...]` starts a distributed job: copies of one command that "
      "find "
      "each other through a tracker. This page is written by `dmlc-submit --help-markdown`.\n\n"
      "**The command.** The options end at the first word that is none, or after `--`. From there on every "
      "word "
      "goes to the command byte for byte; no shell reads it. A command without a `/` is looked for on "
      "`PATH`, "
      "as a shell does; when it is not there and the current directory holds an executable file of that "
      "name, "
      "that file is run as `./name`.\n\n"
      "**The environment.** Processes get the environment of dmlc-submit, then `--env`, then the `DMLC_` "
      "variables of the job. Their standard input is empty.\n\n"
      "**Parameter servers.** With `--num-servers` the scheduler, the servers and the workers find each "
      "other "
      "through `DMLC_PS_ROOT_URI` and `DMLC_PS_ROOT_PORT`; no rabit tracker runs, as programs of that kind "
      "never "
      "speak to one and it would wait for them in vain.\n\n"
      "**Exit code.** 0 when every process exits with 0; otherwise that of the first process that failed for "
      "good (128 + the number of the signal that killed it); 127 or 126 when the command cannot be found or "
      "run; 2 for a mistake in the options; 1 for trouble of dmlc-submit or the tracker; 130, 143 or 129 "
      "after "
      "SIGINT, SIGTERM or SIGHUP; 141 when nobody reads the output any more.\n";
  ForEachRow(
      [&](std::string_view group) {
        text += fmt::format("\n## {}\n\n| Option | What it does | Clusters |\n|---|---|---|\n", group);
      },
      [&](const Option& option) {
        text += fmt::format("| `{}` | {} | {} |\n", EscapedForMarkdown(Usage(option), "|"),
                            EscapedForMarkdown(HelpOf(option), "|<>"), ClusterNames(option.clusters));
      });
  return text;
}

}  // namespace warren::submit
