// bootstrap-workers: starts a tracker, has N simulated workers form a job, and prints the time taken as one
// line of JSON. Every worker really connects to the tracker and makes its links, which are then checked.
// bench/bootstrap runs this for our tracker and others in turn.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/bootstrap_workers/fleet.h"
#include "bench/bootstrap_workers/tracker_process.h"

namespace {

using namespace warren::bench;
namespace wire = warren::wire;

/// Time for the tracker to notice the silent connections before the job starts.
constexpr std::chrono::milliseconds kSilentLead{200};
constexpr std::chrono::seconds kTrackerStartTime{60};
constexpr int kExitStalled = 3;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

/// Returns an address that depends on the process ID. Consecutive runs thus almost always use different parts
/// of 127.0.0.0/8, and are not affected by connections that the previous run left in TIME_WAIT.
std::uint32_t FirstAddress() {
  constexpr std::uint32_t kLoopback = 0x7f000000;
  constexpr std::uint32_t kParts = 127;  // each has 131,072 addresses, the largest number of workers
  return kLoopback + ((1 + static_cast<std::uint32_t>(getpid()) % kParts) << 17);
}

struct Options {
  int num_workers = 0;
  int num_silent = 0;
  double limit_seconds = 300;
  bool whole_messages = false;
  wire::Dialect dialect = wire::Dialect::kClassic;
  std::vector<std::string> tracker;
};

/// Opens connections that never send anything. The tracker may not have accepted all of them when this
/// returns.
std::vector<Descriptor> OpenSilent(int count, const sockaddr_in& tracker) {
  std::vector<Descriptor> silent;
  for (int i = 0; i < count; ++i) {
    silent.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (silent.back().get() < 0) ThrowErrno("socket");
    const auto* address = reinterpret_cast<const sockaddr*>(&tracker);
    if (connect(silent.back().get(), address, sizeof tracker) != 0 && errno != EINPROGRESS)
      ThrowErrno("connect");
  }
  if (count > 0) std::this_thread::sleep_for(kSilentLead);
  return silent;
}

/// The number of connections that the kernel has dropped so far because the queue of a listening socket was
/// full; 0 if unknown.
std::int64_t ListenDrops() {
  // Two lines with the same prefix hold names and values: "TcpExt: SyncookiesSent ..." and "TcpExt: 0 ...".
  std::ifstream file("/proc/net/netstat");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    if (fields.empty() || fields[0] != "TcpExt:") continue;
    const auto found = std::find(names.begin(), names.end(), "ListenDrops");
    if (found != names.end()) return std::stoll(fields.at(static_cast<std::size_t>(found - names.begin())));
    names = fields;
  }
  return 0;
}

struct Result {
  std::string outcome = "failed";  ///< linked, stalled or failed
  std::string error;
  Seconds links{};                ///< first connect to last link
  Seconds exit{};                 ///< first shutdown to the tracker's exit
  Seconds tracker_cpu{};          ///< the tracker's processor time while the links were made
  Seconds simulation_cpu{};       ///< the simulated workers' processor time while the links were made
  std::int64_t listen_drops = 0;  ///< in this network namespace while the links were made
  int num_linked = 0;
  long tracker_peak_rss_kib = 0;
};

void RunJob(const Options& options, TrackerProcess& tracker, Result& result) {
  WorkerOptions worker_options;
  worker_options.tracker = tracker.address();
  worker_options.first_address = FirstAddress();
  worker_options.whole_messages = options.whole_messages;
  worker_options.dialect = options.dialect;
  Fleet fleet(options.num_workers, worker_options);
  const std::vector<Descriptor> silent = OpenSilent(options.num_silent, tracker.address());

  const auto limit = std::chrono::duration_cast<Clock::duration>(Seconds(options.limit_seconds));
  const auto outcome_name = [](Fleet::Outcome outcome) {
    return outcome == Fleet::Outcome::kTimedOut ? "stalled" : "failed";
  };
  const std::int64_t drops_before = ListenDrops();
  const Seconds cpu_before = tracker.cpu_time();
  const Fleet::Outcome joined = fleet.Join(Clock::now() + limit);
  result.tracker_cpu = tracker.cpu_time() - cpu_before;
  result.listen_drops = ListenDrops() - drops_before;
  result.num_linked = fleet.num_linked();
  result.error = fleet.error();
  if (joined != Fleet::Outcome::kDone) {
    result.outcome = outcome_name(joined);
    if (result.error.empty()) result.error = DescribeStages(fleet.members());
    return;
  }
  result.links = fleet.join_time();
  result.simulation_cpu = fleet.join_cpu_time();
  result.error = FindFault(fleet.members(), options.dialect == wire::Dialect::kClassic);
  if (!result.error.empty()) return;

  const auto shutdown_start = Clock::now();
  const Fleet::Outcome finished = fleet.ShutDown(shutdown_start + limit);
  result.error = fleet.error();
  if (finished != Fleet::Outcome::kDone) {
    result.outcome = outcome_name(finished);
    if (result.error.empty()) result.error = DescribeStages(fleet.members());
    return;
  }
  const auto end = tracker.WaitForEnd(shutdown_start + limit);
  result.outcome = end ? (end->exit_code == 0 ? "linked" : "failed") : "stalled";
  if (!end) return;
  result.exit = Clock::now() - shutdown_start;
  result.tracker_peak_rss_kib = end->peak_rss_kib;
}

/// Returns the text as a JSON string. Replaces quotes, backslashes and control characters, which need not be
/// kept in errors.
std::string JsonText(std::string text) {
  for (char& c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '\'';
  }
  return '"' + text + '"';
}

void PrintResult(const Options& options, const Result& result) {
  fmt::print(
      "{{\"workers\": {}, \"silent\": {}, \"outcome\": {}, \"error\": {}, \"links_s\": {:.6f}, \"exit_s\": {:.6f}, "
      "\"tracker_cpu_s\": {:.6f}, \"simulation_cpu_s\": {:.6f}, \"tracker_peak_rss_kib\": {}, "
      "\"linked_workers\": {}, \"listen_drops\": {}}}\n",
      options.num_workers, options.num_silent, JsonText(result.outcome), JsonText(result.error),
      result.links.count(), result.exit.count(), result.tracker_cpu.count(), result.simulation_cpu.count(),
      result.tracker_peak_rss_kib, result.num_linked, result.listen_drops);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Starts a tracker and N simulated workers; measures how long the job takes to come together.",
               "bootstrap-workers");
  Options options;
  app.add_option("--num-workers", options.num_workers, "simulated workers")
      ->required()
      ->check(CLI::Range(1, 131072));
  app.add_option("--silent", options.num_silent, "silent connections, opened before the job")
      ->check(CLI::Range(0, 10000));
  app.add_option("--limit", options.limit_seconds, "seconds after which a job counts as stalled")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.add_flag("--whole-messages", options.whole_messages,
               "send each message at once; rabit sends it field by field, which costs delayed ACKs");
  app.add_option("--dialect", options.dialect,
                 "classic: rabit and XGBoost up to 2.0; collective: XGBoost 2.1 and later")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, wire::Dialect>{{"classic", wire::Dialect::kClassic},
                                               {"collective", wire::Dialect::kCollective}},
          CLI::ignore_case));
  app.add_option("tracker", options.tracker, "the tracker's command, after --")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  Result result;
  try {
    TrackerProcess tracker(options.tracker, Clock::now() + kTrackerStartTime);
    RunJob(options, tracker, result);
  } catch (const std::exception& error) {
    result.outcome = "failed";
    result.error = error.what();
  }
  PrintResult(options, result);
  return result.outcome == "linked" ? 0 : result.outcome == "stalled" ? kExitStalled : kExitFailed;
}
