// dmlc-submit: starts a distributed job, N copies of a command that find each other through a tracker.

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "submit/command.h"
#include "submit/console.h"
#include "submit/log.h"
#include "submit/options.h"
#include "submit/run.h"

namespace warren::submit {
namespace {

/// How long an interrupted dmlc-submit tries to get rid of output that nobody reads.
constexpr std::chrono::milliseconds kLastWords{500};

/// Descriptors 0, 1 and 2 are in use from here on, so that no pipe gets one of these numbers.
void OpenStandardDescriptors() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
}

/// Whatever the parent did with signals, these are needed; a broken pipe is seen where it is written to.
void TakeSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t needed;
  sigemptyset(&needed);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&needed, signal);
  sigprocmask(SIG_UNBLOCK, &needed, nullptr);
}

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Answers --help and the like; true when that was all.
bool Answer(const Options& options) {
  switch (options.request) {
    case Request::kHelp:
      Print(HelpText());
      return true;
    case Request::kHelpMarkdown:
      Print(HelpMarkdown());
      return true;
    case Request::kVersion:
      Print("dmlc-submit (Warren) " WARREN_VERSION "\n");
      return true;
    case Request::kRun:
      break;
  }
  return false;
}

void CheckCluster(const Options& options) {
  if (options.cluster == kMesos) {
    throw UsageError(
        "--cluster mesos is not supported: Apache Mesos is retired; only local is supported yet");
  }
  if (options.cluster != kLocal) {
    throw UsageError(
        fmt::format("--cluster {} is not supported yet, only local", ClusterName(options.cluster)));
  }
}

void CheckFiles(const char* option, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (!std::filesystem::exists(file))
      throw UsageError(fmt::format("{}: '{}' does not exist", option, file));
  }
}

void SayWhatIsAssumed(const Options& options) {
  if (!options.cluster_was_chosen)
    spdlog::info("no --cluster given: running on this machine (--cluster local)");
  if (!options.ignored.empty()) {
    spdlog::warn("without effect on --cluster {}{}: {}", ClusterName(options.cluster),
                 options.num_servers > 0 ? " with --num-servers" : "", fmt::join(options.ignored, ", "));
  }
}

/// The value of PATH the processes will have.
std::string SearchPathOf(const Options& options) {
  const char* inherited = std::getenv("PATH");
  std::string path = inherited != nullptr ? inherited : "/usr/local/bin:/usr/bin:/bin";
  for (const auto& [name, value] : options.environment) {
    if (name == "PATH") path = value;
  }
  return path;
}

JobResult Submit(boost::asio::io_context& io, Console& console, const Options& options) {
  StartLogging(console, options.debug_log, options.log_file);
  CheckCluster(options);
  CheckFiles("--files", options.files);
  CheckFiles("--archives", options.archives);
  SayWhatIsAssumed(options);
  const FoundCommand command = FindCommand(options.command.front(), SearchPathOf(options));
  if (!command.note.empty()) spdlog::info("{}", command.note);
  if (options.dry_run) {
    console.Print(ShowDryRun(options, command));
    return {};
  }
  return RunJob(io, console, options, command);
}

/// Submit, with every error turned into its message and exit code.
JobResult SubmitOrExplain(boost::asio::io_context& io, Console& console, const Options& options) {
  JobResult failed;
  std::string message;
  try {
    return Submit(io, console, options);
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

int Main(const std::vector<std::string>& arguments) {
  Options options;
  try {
    options = ParseOptions(arguments);
  } catch (const UsageError& error) {
    fmt::print(stderr, "dmlc-submit: error: {}\ndmlc-submit: --help lists the options\n", error.what());
    return kUsage;
  }
  if (Answer(options)) return 0;
  boost::asio::io_context io(1);
  Console console(io, options.color);
  const JobResult result = SubmitOrExplain(io, console, options);
  console.Flush(result.interrupted ? std::optional(kLastWords) : std::nullopt);
  StopLogging();
  return result.exit_code;
}

}  // namespace
}  // namespace warren::submit

int main(int argc, char** argv) {
  warren::submit::OpenStandardDescriptors();
  warren::submit::TakeSignals();
  return warren::submit::Main({argv + 1, argv + argc});
}
