// rabit-tracker serves one job whose workers are started by other means. It prints the environment that the
// workers need, waits until all have shut down, and reports the reason if that does not happen.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/parse.h"
#include "tracker/environment.h"
#include "tracker/host_address.h"
#include "tracker/input_watch.h"
#include "tracker/log_lines.h"
#include "tracker/man_page.h"
#include "tracker/server.h"
#include "tracker/state_file.h"
#include "wire/job_token.h"

namespace {

using namespace warren::tracker;
namespace wire = warren::wire;

constexpr int kExitFailed = 1;
constexpr int kExitSignal = 128;

struct Options {
  std::string workers;  ///< the value of --num-workers: "4" or "2:4"
  int num_workers = 0;  ///< in an elastic job: the maximum
  std::optional<int> min_workers;
  double replace_within_seconds = std::chrono::duration<double>(ElasticOptions().replace_within).count();
  double linger_seconds = 0;
  int num_servers = 0;
  std::string host_ip = "auto";
  std::optional<std::uint16_t> port;
  std::uint16_t port_end = kLastPort;
  SortBy sort_by = SortBy::kHost;
  std::string state_path;  ///< empty: no other tracker can take over the job
  bool until_stdin_closes = false;
  bool tls = false;
  std::string token_file;  ///< empty: DMLC_JOB_TOKEN, or the token in the state file, or a generated one
  std::optional<Admit> admit;
  std::vector<std::string> admitted_hosts;
  double timeout_seconds = std::chrono::duration<double>(kDefaultTimeout).count();
  spdlog::level::level_enum log_level = spdlog::level::info;
};

/// Parses "4" or "2:4" into `options`. Returns an error message, or "" on success.
std::string StoreWorkers(const std::string& text, Options& options) {
  const std::size_t colon = text.find(':');
  const auto count = [&](const std::string& word) {
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool is_valid = error == std::errc{} && end == word.data() + word.size() && value >= 1 &&
                          value <= wire::classic::kMaxWorldSize;
    return is_valid ? value : 0;
  };
  options.num_workers = count(colon == std::string::npos ? text : text.substr(colon + 1));
  options.min_workers.reset();
  if (colon != std::string::npos) options.min_workers = count(text.substr(0, colon));
  if (options.num_workers > 0 && options.min_workers.value_or(1) > 0 &&
      options.min_workers.value_or(1) <= options.num_workers) {
    return {};
  }
  return fmt::format("{} is not a number of workers from 1 to {}, nor MIN:MAX", text,
                     wire::classic::kMaxWorldSize);
}

void Declare(CLI::App& app, Options& options) {
  app.add_option(
         "-n,--num-workers", options.workers,
         "workers of the job; with MIN:MAX, it goes on while at least MIN are left, for programs that use "
         "warren.xgboost.train(..., elastic=True)")
      ->required()
      ->check([&options](const std::string& text) { return StoreWorkers(text, options); });
  app.add_option("--replace-within", options.replace_within_seconds,
                 "with MIN:MAX: seconds that the others wait for a worker in the place of a lost one")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--linger", options.linger_seconds,
                 "with MIN:MAX: seconds to stay after the end of the job, to tell workers that come too late "
                 "that its work is done")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--num-servers", options.num_servers, "parameter servers; the workers are told this number")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
         "--host-ip", options.host_ip,
         "where workers connect to the tracker: an address or name of this machine, auto (the address of the default route) or dns (the full host name)")
      ->capture_default_str();
  app.add_option(
      "--port", options.port,
      fmt::format(
          "first port to try; 0 takes any free one. "
          "By default the search starts at a random port from {} to {}, so that workers left over from an earlier job do not reach this tracker",
          kFirstPort, kLastPort));
  app.add_option("--port-end", options.port_end, "last port to try")->capture_default_str();
  app.add_option("--sortby", options.sort_by,
                 "how workers are sorted before ranks are assigned: host or task")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, SortBy>{{"host", SortBy::kHost}, {"task", SortBy::kTask}}, CLI::ignore_case));
  app.add_option(
      "--state", options.state_path,
      "keep the state of the job in this file; a tracker started with the same file takes over the job, on the same port");
  app.add_option(
         "--token-file", options.token_file,
         "read the job's token, 64 hexadecimal digits, from this file instead of the variable DMLC_JOB_TOKEN; "
         "without either, a token is generated and printed with the environment")
      ->check(
          [](const std::string& path) { return path.empty() ? "the file name is empty" : std::string(); });
  app.add_flag(
      "--tls", options.tls,
      "encrypt the connections of workers that know the token, with the token as the key (TLS 1.3), and set WARREN_TLS=1 for them to do the same among themselves");
  app.add_option(
         "--admit", options.admit,
         "workers to accept although they neither prove the token nor join through warren.xgboost, such as programs with XGBoost's own communication: "
         "token (none), user (processes of this user on this machine), hosts (those from this machine and --admit-host) or any. Default: "
         "hosts with --admit-host, else user")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Admit>{{"token", Admit::kToken},
                                                                       {"user", Admit::kUser},
                                                                       {"hosts", Admit::kHosts},
                                                                       {"any", Admit::kAny}},
                                          CLI::ignore_case));
  app.add_option("--admit-host", options.admitted_hosts,
                 "a host of the job, by address or name, for --admit hosts; may be repeated");
  app.add_option("--timeout", options.timeout_seconds,
                 "seconds that workers may be missing, at the start or when linking again; 0 waits forever")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_flag(
      "--until-stdin-closes", options.until_stdin_closes,
      "exit when standard input closes; with a pipe, that is when the process at its other end exits");
  app.add_option("--log-level", options.log_level, "INFO, DEBUG or WARNING")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, spdlog::level::level_enum>{{"INFO", spdlog::level::info},
                                                           {"DEBUG", spdlog::level::debug},
                                                           {"WARNING", spdlog::level::warn}},
          CLI::ignore_case));
}

/// Throws CLI::ValidationError if options contradict each other, or if one would have no effect.
void CheckTogether(const CLI::App& app, const Options& options) {
  const auto refuse = [](const std::string& why) { throw CLI::ValidationError(why); };
  if (!options.admitted_hosts.empty() && options.admit.value_or(Admit::kHosts) != Admit::kHosts) {
    refuse("--admit-host needs --admit hosts: the other values of --admit do not depend on the host");
  }
  for (const char* name : {"--replace-within", "--linger"}) {
    if (app.count(name) == 0 || options.min_workers) continue;
    refuse(fmt::format(
        "{} needs --num-workers MIN:MAX: it has no effect on a job with a fixed number of workers", name));
  }
  const std::uint16_t first = options.port.value_or(kFirstPort);
  if (app.count("--port-end") > 0 && options.port_end < first) {
    refuse(fmt::format("--port-end {} is below --port {}", options.port_end, first));
  }
}

/// The manual page, built from the options of `app`.
std::string ManPageOf(const CLI::App& app) {
  ManPage page;
  page.program = "rabit-tracker";
  page.version = WARREN_VERSION;
  page.summary = "bring the workers of a job together";
  page.synopsis = "--num-workers N [options]";
  page.sections.push_back(
      {"Description",
       {"Serves one rabit or XGBoost job whose workers are started separately: "
        "prints the environment that they need, waits until all have shut down, and then exits with 0. Otherwise it reports why and exits with 1.",
        "The environment is printed between the lines DMLC_TRACKER_ENV_START and DMLC_TRACKER_ENV_END."},
       {}});
  page.sections.push_back({"Options", {}, {}});
  for (const CLI::Option* option : app.get_options()) {
    std::string term = option->get_name(false, true);
    if (option->get_items_expected_max() > 0) term += " VALUE";
    std::string text = option->get_description();
    if (!text.empty())
      text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    if (!option->get_default_str().empty()) text += fmt::format(" (default: {})", option->get_default_str());
    page.sections.back().items.push_back({term, text + "."});
  }
  page.sections.push_back({"See also", {"`dmlc-submit`(1), `warren`(1)"}, {}});
  return ManText(page);
}

/// Prints the block that scripts look for. The tracker writes nothing else to stdout, so that a parent may
/// stop reading after the block's last line.
void PrintEnvironment(const JobAddress& address) {
  fmt::print("DMLC_TRACKER_ENV_START\n");
  for (const auto& [name, value] : JobEnvironment(address)) fmt::print("{}={}\n", name, value);
  fmt::print("DMLC_TRACKER_ENV_END\n");
  std::fflush(stdout);
}

wire::JobToken ReadToken(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    spdlog::warn(
        "--token-file {}: other users may read or write it (mode {:03o}), and could then join the job: chmod 600",
        path, status.st_mode & 0777U);
  }
  std::ifstream file(path);
  std::string text(std::size_t{1024}, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty())
    throw std::runtime_error(fmt::format("--token-file {}: the file cannot be read or is empty", path));
  try {
    return wire::JobToken::Parse(text);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("--token-file {}: {}", path, error.what()));
  }
}

/// The token from --token-file or the environment; std::nullopt if neither has one. Throws std::runtime_error
/// if the job in the state file has another token.
std::optional<wire::JobToken> ToldToken(const Options& options, const StateFile* state) {
  const auto told = options.token_file.empty() ? TokenFromEnvironment() : ReadToken(options.token_file);
  if (told && state != nullptr && state->token() && !(*told == *state->token())) {
    throw std::runtime_error(fmt::format(
        "the state file '{}' belongs to a job with another token than the one from {}; give the token of that job, or remove the file to start a new job",
        options.state_path, options.token_file.empty() ? wire::kTokenVariable : "--token-file"));
  }
  return told;
}

AdmissionOptions AdmissionOf(const Options& options, const wire::JobToken& token) {
  AdmissionOptions admission;
  admission.token = token;
  admission.tls = options.tls;
  admission.admit = options.admit.value_or(options.admitted_hosts.empty() ? Admit::kUser : Admit::kHosts);
  for (const std::string& host : options.admitted_hosts) admission.hosts.merge(AddressesOf(host));
  if (admission.admit == Admit::kHosts) admission.hosts.merge(AddressesOfThisMachine());
  return admission;
}

/// The seconds as whole milliseconds, rounded up.
std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(std::ceil(seconds * 1000)));
}

/// The number of workers in the form of the state file: "4" or "2:4".
std::string WorkersText(const Options& options) {
  return options.min_workers ? fmt::format("{}:{}", *options.min_workers, options.num_workers)
                             : fmt::format("{}", options.num_workers);
}

/// The file of --state; nullptr without that option. Throws std::runtime_error if the file cannot be used or
/// belongs to a job with another number of workers.
std::unique_ptr<StateFile> OpenState(const Options& options) {
  if (options.state_path.empty()) return nullptr;
  auto state = std::make_unique<StateFile>(options.state_path);
  if (state->begun() && state->workers() != WorkersText(options)) {
    throw std::runtime_error(fmt::format(
        "the state file '{}' belongs to a job of {} workers, not {} (--num-workers); remove it to start a new job",
        options.state_path, state->workers(), WorkersText(options)));
  }
  return state;
}

ServerOptions ServerOptionsOf(const Options& options, const std::string& bind_address,
                              const wire::JobToken& token, const StateFile* state) {
  ServerOptions of_server;
  of_server.bind_address = bind_address;
  of_server.port = options.port.value_or(kFirstPort);
  of_server.begin_anywhere = !options.port;
  of_server.port_end = options.port_end;
  of_server.job = {options.num_workers, options.sort_by, false, Milliseconds(options.timeout_seconds)};
  of_server.job.takes_notes = state != nullptr;
  if (options.min_workers) {
    of_server.job.elastic = {*options.min_workers, options.num_workers,
                             Milliseconds(options.replace_within_seconds), of_server.job.timeout};
  }
  of_server.job.admission = AdmissionOf(options, token);
  if (state != nullptr && state->begun()) {
    of_server.port = of_server.port_end = state->port();
    of_server.begin_anywhere = false;
    of_server.notes = state->notes();
  }
  return of_server;
}

int Serve(const Options& options) {
  boost::asio::io_context io(1);
  int exit_code = 0;
  bool lingers = false;  ///< whether the job has succeeded and the tracker waits for late workers
  boost::asio::steady_timer linger(io);
  const std::unique_ptr<StateFile> state = OpenState(options);

  ServerEvents events;
  events.linked = [&] { spdlog::info("tracker: all workers are linked"); };
  events.work_done = [](bool is_done) { spdlog::info("{}", is_done ? kWorkIsDone : kWorkGoesOn); };
  events.print = [](int, const std::string& text) {
    // fmt::print would throw if stderr cannot be written, which must not end the job.
    const std::string lines = text + (text.ends_with('\n') ? "" : "\n");
    static_cast<void>(std::fwrite(lines.data(), 1, lines.size(), stderr));
  };
  events.finished = [&](const std::string& failure) {
    if (failure.empty()) {
      spdlog::info("{}", kAllHaveFinished);
    } else {
      spdlog::error("tracker: {}", failure);
      exit_code = kExitFailed;
    }
    if (state) state->Remove();
    if (!failure.empty() || !options.min_workers || options.linger_seconds == 0) return io.stop();
    lingers = true;
    linger.expires_after(Milliseconds(options.linger_seconds));
    linger.async_wait([&](boost::system::error_code) { io.stop(); });
  };
  const auto warn = [](const std::string& warning) {
    if (!warning.empty()) spdlog::warn("tracker: {}", warning);
  };
  events.note = [&](const Note& note) { warn(state->Add(note)); };

  const std::string host = ResolveHostIp(options.host_ip);
  const std::string bind_address = BindAddressFor(host);
  const std::optional<wire::JobToken> told = ToldToken(options, state.get());
  const auto made = [&] { return state && state->token() ? *state->token() : wire::JobToken::Random(); };
  const wire::JobToken token = told ? *told : made();
  const ServerOptions server_options = ServerOptionsOf(options, bind_address, token, state.get());
  const auto serve = [&] {
    try {
      return std::make_unique<Server>(io, server_options, std::move(events));
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error(fmt::format("the state file '{}': {}", options.state_path, error.what()));
    }
  };
  const std::unique_ptr<Server> running = serve();
  Server& server = *running;
  if (state && !state->begun()) warn(state->Begin(server.port(), WorkersText(options), token));

  boost::asio::signal_set signals(io, SIGINT, SIGTERM, SIGHUP);
  signals.async_wait([&](boost::system::error_code error, int signal) {
    if (error) return;
    if (lingers) return io.stop();
    spdlog::error("tracker: stopped by signal {}; {}", signal, server.job().DescribeMissing());
    if (state)
      spdlog::info("tracker: '{}' keeps the state of the job for another tracker", options.state_path);
    exit_code = kExitSignal + signal;
    io.stop();
  });

  std::optional<InputWatch> input;
  if (options.until_stdin_closes) {
    input.emplace(io, [&] {
      if (lingers) return io.stop();
      spdlog::warn("tracker: standard input has closed; {}", server.job().DescribeMissing());
      exit_code = kExitFailed;
      io.stop();
    });
  }

  JobAddress address;
  address.tracker_host = host;
  address.tracker_port = server.port();
  address.num_workers = options.num_workers;
  address.num_servers = options.num_servers;
  if (!told) address.token = token.ToHex();
  address.tls = options.tls;
  address.min_workers = options.min_workers;
  PrintEnvironment(address);
  if (server_options.notes.empty()) {
    spdlog::info("tracker: waiting for {} workers on {}:{}", options.workers, host, server.port());
  } else {
    spdlog::info("tracker: has taken over the job in '{}' on {}:{}; {}", options.state_path, host,
                 server.port(), server.job().DescribeMissing());
  }
  io.run();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a log file that reaches its size limit must not end the job
  CLI::App app("Brings the workers of one rabit or XGBoost job together and waits until they have finished.",
               "rabit-tracker");
  app.set_version_flag("-V,--version", "rabit-tracker (Warren) " WARREN_VERSION);
  Options options;
  Declare(app, options);
  app.callback([&] { CheckTogether(app, options); });
  app.add_flag_callback(
         "--help-man",
         [&] {
           fmt::print("{}", ManPageOf(app));
           throw CLI::Success();
         },
         "print the manual page rabit-tracker.1")
      ->trigger_on_parse();  // even if required options are missing
  const int parsed =
      warren::cli::ParseOrExplain(app, "rabit-tracker", argc, argv, {{"-np", "--num-workers"}});
  if (parsed >= 0) return parsed;
  auto logger = spdlog::stderr_color_st("rabit-tracker");
  logger->set_pattern("%Y-%m-%d %H:%M:%S %^%l%$ %v");
  logger->set_level(options.log_level);
  spdlog::set_default_logger(logger);
  try {
    return Serve(options);
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return kExitFailed;
  }
}
