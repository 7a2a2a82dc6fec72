// dmlc-submit: starts a distributed job, N copies of a command that find each other through a tracker.

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "submit/cluster/clusters.h"
#include "submit/cluster/kubernetes/manifest.h"
#include "submit/command.h"
#include "submit/options.h"
#include "submit/output/console.h"
#include "submit/output/log.h"
#include "submit/process/descriptor.h"
#include "submit/run.h"
#include "submit/shipping.h"

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
  std::signal(SIGXFSZ, SIG_IGN);  // a log that has grown to the limit is no end of the job
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

void SayWhatIsAssumed(const Options& options) {
  if (!options.ignored.empty()) {
    spdlog::warn("without effect on --cluster {}{}: {}", ClusterName(options.cluster),
                 options.num_servers > 0 ? " with --num-servers" : "", fmt::join(options.ignored, ", "));
  }
}

/// Readable for this user alone: the environment is in it.
void WriteManifest(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  bool whole = file && (fchmod(file.get(), 0600) == 0 || errno == EPERM || errno == EINVAL);  // a device, say
  for (std::size_t done = 0; whole && done < text.size();) {
    const ssize_t count = write(file.get(), text.data() + done, text.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else {
      whole = errno == EINTR;
    }
  }
  if (!whole) throw std::runtime_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  spdlog::info("'{}' has the manifest: kubectl apply --server-side -f {}", path, ShellQuote(path));
}

JobResult Submit(boost::asio::io_context& io, Console& console, Options& options) {
  StartLogging(console, options.debug_log, options.log_file);
  const Shipment shipment = PlanShipment(options);
  SayWhatIsAssumed(options);
  if (options.cluster == kKubernetes) options.job_name = KubernetesJobName(options);
  for (const std::string& path : shipment.too_big) {
    spdlog::info("'{}' is too big to be sent along; it is taken to be where the processes run", path);
  }
  options.command = shipment.command;
  options.files = shipment.files;  // those that the command names among them
  options.auto_file_cache = false;
  const FoundCommand command = CommandOf(options);
  if (!command.note.empty()) spdlog::info("{}", command.note);
  const bool manifest_only = options.cluster == kKubernetes && !options.kube_manifest.empty();
  if (manifest_only && options.kube_manifest != "-" && !options.dry_run) {
    WriteManifest(options.kube_manifest, ShowDryRun(options, command));
    return {};
  }
  if (options.dry_run || manifest_only) {
    console.Print(ShowDryRun(options, command));
    return {};
  }
  if (options.cluster == kKubernetes) ShowDryRun(options, command);  // what is wrong with it is found now
  const PlacedFiles placed(HaveDirectoriesOfTheirOwn(options.cluster) ? Shipment() : shipment);
  return RunJob(io, console, options, command, placed.Removal());
}

/// Submit, with every error turned into its message and exit code.
JobResult SubmitOrExplain(boost::asio::io_context& io, Console& console, Options& options) {
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
