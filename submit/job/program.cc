#include "submit/job/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "submit/cluster/clusters.h"
#include "submit/cluster/host_file.h"
#include "submit/cluster/host_source.h"
#include "submit/cluster/shipping.h"
#include "submit/job/run.h"
#include "submit/monitor/history.h"
#include "submit/options/completion/completion.h"
#include "submit/options/help.h"
#include "submit/options/options.h"
#include "submit/options/parse.h"
#include "submit/output/console.h"
#include "submit/output/log.h"
#include "submit/output/log_folder.h"
#include "submit/process/command.h"
#include "submit/process/detach.h"
#include "submit/process/whole_file.h"
#include "wire/printable.h"
#include "wire/variables.h"

namespace warren::submit {
namespace {

/// The maximum time for writing the remaining output of an interrupted job, which may have no reader.
constexpr std::chrono::milliseconds kLastWords{500};

/// Ensures that the descriptors 0, 1 and 2 are open, so that files and pipes opened later get other numbers.
void OpenStandardDescriptors() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
}

/// Undoes inherited signal settings that would interfere. SIGPIPE is ignored, because writing to a broken
/// pipe also returns an error.
void TakeSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a log that reaches its size limit must not end the job
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t needed;
  sigemptyset(&needed);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&needed, signal);
  sigprocmask(SIG_UNBLOCK, &needed, nullptr);
}

/// Throws std::system_error if standard output cannot be written.
void Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  throw std::system_error(errno, std::generic_category(), "cannot write to standard output");
}

/// Handles --save. Throws std::runtime_error if the file cannot be written or exists with other content.
void SaveJob(const Options& options) {
  const std::string& path = options.save_file;
  if (options.cluster_is_from_environment && options.cluster != Options().cluster) {
    fmt::print(stderr,
               "dmlc-submit: the job file does not name the cluster, {}, which DMLC_SUBMIT_CLUSTER chose; "
               "--cluster {} writes it\n",
               options.cluster, options.cluster);
  }
  if (path == "-") return Print(options.saved_job);
  if (std::filesystem::exists(path)) {
    if (ReadWholeFile(path) == options.saved_job)
      return Print(fmt::format("'{}' already contains this job\n", path));
    throw std::runtime_error(fmt::format(
        "--save: '{}' exists and has other content, which is kept; remove it, or give another name", path));
  }
  WritePrivateFile(path, options.saved_job, O_EXCL);
  Print(fmt::format("wrote '{}'; start the job with: dmlc-submit --job {}\n", path, ShellQuote(path)));
}

/// Prints the hosts for --show-hosts. Throws std::runtime_error if the hosts cannot be determined.
void ShowHosts(Options options) {
  Discover(options);
  for (const Host& host : HostsAtStart(options)) Print(host.Line() + '\n');
}

/// Handles --help and similar options; does nothing if a job is to be run. Throws std::runtime_error if
/// --save or --show-hosts fails.
void Answer(const Options& options) {
  switch (options.request) {
    case Request::kHelp:
      return Print(HelpText(AllOptions()));
    case Request::kHelpMarkdown:
      return Print(HelpMarkdown(AllOptions()));
    case Request::kHelpEnvironment:
      return Print(wire::VariablesMarkdown());
    case Request::kHelpMan:
      return Print(HelpMan(AllOptions(), WARREN_VERSION));
    case Request::kHelpSchema:
      return Print(HelpSchema(AllOptions()));
    case Request::kSave:
      return SaveJob(options);
    case Request::kCompletion:
      return Print(CompletionScript(AllOptions(), options.shell));
    case Request::kShowHosts:
      return ShowHosts(options);
    case Request::kVersion:
      return Print("dmlc-submit (Warren) " WARREN_VERSION "\n");
    case Request::kRun:
      return;
  }
}

void SayWhatIsAssumed(const Options& options) {
  if (!options.ignored.empty()) {
    spdlog::warn("no effect with --cluster {}{}: {}", options.cluster,
                 options.num_servers > 0      ? " with --num-servers"
                 : options.no_tracker         ? " with --no-tracker"
                 : options.mode == Mode::kMpi ? " with --mode mpi"
                                              : "",
                 fmt::join(options.ignored, ", "));
  }
}

/// Makes the output of a detached job go to its log folder once the job has begun. Without --log-dir, the log
/// folder is a new one next to the job's record. Throws std::runtime_error if there is no place for the
/// record.
void KeepOutput(Console& console, Options& options, Detached& detached, JobStart& start) {
  const std::string history = HistoryFolder(std::getenv("XDG_STATE_HOME"), std::getenv("HOME"));
  if (history.empty()) {
    throw std::runtime_error(
        "--detach needs a place for the job's record: neither XDG_STATE_HOME nor HOME is set");
  }
  const std::string id = JobId(RecordOfThisProcess(start.began));
  if (options.log_dir.empty()) options.log_dir = fmt::format("{}/{}", history, id);
  const std::string log = fmt::format("{}/{}", options.log_dir, kLauncherLog);
  start.on_begin = [&console, &detached, id, log](const std::string& record_error) {
    if (!record_error.empty()) throw std::runtime_error(fmt::format("--detach: {}", record_error));
    console.Flush(std::nullopt);
    detached.Begin(id, log);
  };
}

JobResult Submit(boost::asio::io_context& io, Console& console, Options& options, Detached* detached) {
  StartLogging(console, {options.debug_log, options.quiet, options.log_format, options.log_file});
  const ClusterEntry& cluster = ClusterOf(options);
  SayWhatIsAssumed(options);
  if (cluster.complete) cluster.complete(options);
  const Shipment shipment = PlanShipment(options);
  for (const std::string& path : shipment.too_big) {
    spdlog::info("'{}' is too big to ship; it must already exist where the processes run", path);
  }
  options.command = shipment.command;
  options.files = shipment.files;  // --files, and files that the command names
  options.auto_file_cache = false;
  const FoundCommand command = CommandOf(options);
  if (!command.note.empty()) spdlog::info("{}", command.note);
  if (options.dry_run) {
    console.Print(ShowDryRun(options, command));
    return {};
  }
  if (cluster.export_job && cluster.export_job(options, ShowDryRun(options, command), console)) return {};
  JobStart start;
  if (detached != nullptr) KeepOutput(console, options, *detached, start);
  const PlacedFiles placed(cluster.has_own_directories ? Shipment() : shipment);
  start.cleanup = placed.Removal();
  return RunJob(io, console, options, command, start);
}

/// Like Submit, but logs errors and turns them into exit codes.
JobResult SubmitOrExplain(boost::asio::io_context& io, Console& console, Options& options,
                          Detached* detached) {
  JobResult failed;
  std::string message;
  try {
    return Submit(io, console, options, detached);
  } catch (const UsageError& error) {
    failed.exit_code = kUsage;
    message = error.what();
  } catch (const CommandError& error) {
    failed.exit_code = error.exit_code;
    message = error.what();
  } catch (const std::exception& error) {
    failed.exit_code = kTrouble;
    message = error.what();
  }
  spdlog::error("{}", message);
  return failed;
}

/// Runs the job in this process. `detached`: null without --detach.
int RunHere(Options& options, Detached* detached) {
  boost::asio::io_context io(1);
  Console console(io, {options.color, options.log_format, options.quiet});
  const JobResult result = SubmitOrExplain(io, console, options, detached);
  console.Flush(result.interrupted ? std::optional(kLastWords) : std::nullopt);
  StopLogging();
  return result.exit_code;
}

/// Prints the error; returns the exit code.
int Refuse(const std::runtime_error& error) {
  fmt::print(stderr, "dmlc-submit: error: {}\n", error.what());
  return kTrouble;
}

}  // namespace

int RunProgram(int argc, char** argv) {
  OpenStandardDescriptors();
  TakeSignals();
  Options options;
  try {
    options = ParseOptions(AllOptions(), {argv + 1, argv + argc}, ReadWholeFile);
  } catch (const UsageError& error) {
    fmt::print(stderr, "dmlc-submit: error: {}\ndmlc-submit: --help lists the options\n",
               wire::PrintableLines(error.what()));
    return kUsage;
  }
  try {
    Answer(options);
    if (options.request != Request::kRun) return 0;
  } catch (const std::system_error& error) {
    return error.code() == std::errc::broken_pipe ? kReaderGone : Refuse(error);
  } catch (const std::runtime_error& error) {
    return Refuse(error);
  }
  try {
    if (!options.detach) return RunHere(options, nullptr);
    return Detach([&options](Detached& detached) { return RunHere(options, &detached); });
  } catch (const std::exception& error) {  // before logging began, e.g. fork failed
    fmt::print(stderr, "dmlc-submit: error: {} (limits of this process: ulimit -a)\n", error.what());
    return kTrouble;
  }
}

}  // namespace warren::submit
