#include "bench/bootstrap_workers/tracker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <sstream>
#include <stdexcept>

namespace warren::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns false if nothing can be read by the deadline.
bool WaitReadable(const Descriptor& descriptor, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{descriptor.get(), POLLIN, 0};
    const int count = left <= 0 ? 0 : poll(&entry, 1, static_cast<int>(left));
    if (count < 0 && errno != EINTR) ThrowErrno("poll");
    if (count >= 0) return count > 0;
  }
}

}  // namespace

TrackerProcess::TrackerProcess(const std::vector<std::string>& command, Clock::time_point deadline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) ThrowErrno("pipe2");
  output_ = Descriptor(ends[0]);
  Descriptor write_end(ends[1]);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  pid_ = fork();
  if (pid_ < 0) ThrowErrno("fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(write_end.get(), STDOUT_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  write_end.reset();  // so that the output ends when the tracker exits
  try {
    ReadEnvironment(deadline);
  } catch (...) {
    Kill();
    throw;
  }
}

TrackerProcess::~TrackerProcess() {
  if (pid_ > 0) Kill();
}

void TrackerProcess::ReadEnvironment(Clock::time_point deadline) {
  std::string text;
  while (text.find("DMLC_TRACKER_ENV_END\n") == std::string::npos) {
    std::array<char, 4096> buffer;
    const bool ready = WaitReadable(output_, deadline);
    const ssize_t count = ready ? read(output_.get(), buffer.data(), buffer.size()) : 0;
    if (count <= 0) {
      throw std::runtime_error(fmt::format("the tracker {} before its DMLC_TRACKER_ENV block was complete",
                                           ready ? "closed its output" : "ran out of time"));
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  std::string host;
  int port = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals == std::string::npos) continue;
    if (line.substr(0, equals) == "DMLC_TRACKER_URI") host = line.substr(equals + 1);
    if (line.substr(0, equals) == "DMLC_TRACKER_PORT") port = std::stoi(line.substr(equals + 1));
  }
  if (port <= 0 || port > 65535) throw std::runtime_error("the tracker named no port");
  address_ = MakeAddress(host, static_cast<std::uint16_t>(port));
}

std::chrono::duration<double> TrackerProcess::cpu_time() const {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TrackerProcess::End TrackerProcess::Reap() {
  int status = 0;
  rusage usage{};
  if (wait4(pid_, &status, 0, &usage) != pid_) ThrowErrno("wait4");
  pid_ = -1;
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), usage.ru_maxrss};
}

std::optional<TrackerProcess::End> TrackerProcess::WaitForEnd(Clock::time_point deadline) {
  std::array<char, 4096> ignored;
  do {  // the tracker's output ends when the tracker exits
    if (!WaitReadable(output_, deadline)) return std::nullopt;
  } while (read(output_.get(), ignored.data(), ignored.size()) > 0);
  return Reap();
}

void TrackerProcess::Kill() {
  kill(pid_, SIGKILL);
  Reap();
}

}  // namespace warren::bench
