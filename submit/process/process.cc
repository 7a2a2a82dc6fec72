#include "submit/process/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "posix/process.h"
#include "posix/shortage.h"
#include "posix/sockets.h"
#include "posix/thread.h"
#include "submit/process/command.h"
#include "submit/process/watchdog.h"

namespace warren::submit {
namespace {

struct Pipe {
  posix::Descriptor read, write;
};

Pipe MakePipe() {
  std::array<int, 2> ends{};
  if (!posix::NewPipe(ends)) {
    const int error = errno;
    throw StartError(
        fmt::format("cannot create a pipe: {}. {}", std::strerror(error), posix::ShortageAdvice(error)), 1);
  }
  return {posix::Descriptor(ends[0]), posix::Descriptor(ends[1])};
}

/// A CPU mask in the kernel's format, with as many words as its cores need.
class CoreMask {
 public:
  explicit CoreMask(const CoreList& cores)
      : words_(cores.empty() ? 0 : static_cast<std::size_t>(cores.back()) / kBits + 1) {
    for (const int core : cores)
      words_[static_cast<std::size_t>(core) / kBits] |= 1UL << (static_cast<std::size_t>(core) % kBits);
  }
  std::size_t bytes() const { return words_.size() * sizeof(unsigned long); }
  const unsigned long* words() const { return words_.data(); }

 private:
  static constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> words_;
};

/// Everything that the child needs. Made before the fork because the child must not allocate memory.
struct ChildSetup {
  const char* file;
  char* const* argv;
  char* const* environment;
  int in, out, err;
  int report;  ///< a pipe for errno if the program cannot be executed, or -errno if it cannot be bound
  const unsigned long* cores;
  std::size_t cores_bytes;  ///< 0: do not bind
  int watchdog;
  rlimit files;
  bool ignores_hangup;
  pid_t parent;
};

/// Descriptors from this number on are left open if the kernel has no close_range: the limit on descriptors
/// may be much higher, or infinite, and closing so many one by one would be slow.
constexpr rlim_t kMostDescriptors = 65536;

void CloseAllBut(int kept, rlim_t limit) {
  const bool closed = posix::CloseRange(3, static_cast<unsigned>(kept) - 1);
  if (closed && posix::CloseRange(static_cast<unsigned>(kept) + 1, ~0U)) return;
  for (int fd = 3; fd < static_cast<int>(std::min(limit, kMostDescriptors)); ++fd) {
    if (fd != kept) close(fd);
  }
}

void ResetSignals(bool ignores_hangup) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal == SIGHUP && ignores_hangup) continue;
    sigaction(signal, &standard, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void ReportAndExit(const ChildSetup& setup, int error) {
  const ssize_t written = write(setup.report, &error, sizeof error);
  static_cast<void>(written);  // fails only if the parent has died
  _exit(kNotExecutable);
}

/// Makes only calls that are safe between fork and exec.
[[noreturn]] void RunChild(const ChildSetup& setup) {
  setsid();  // also gives the child its own process group
  posix::SignalAtParentsEnd(SIGTERM);
  if (getppid() != setup.parent) _exit(kNotExecutable);  // the parent died before the signal was requested
  // The child announces the group itself, so that the watchdog knows it before the program runs, whatever
  // happens to the parent.
  AnnounceGroup(setup.watchdog, getpid());
  if (dup2(setup.in, 0) < 0 || dup2(setup.out, 1) < 0 || dup2(setup.err, 2) < 0) ReportAndExit(setup, errno);
  rlimit current{};
  getrlimit(RLIMIT_NOFILE, &current);
  CloseAllBut(setup.report, current.rlim_cur);
  setrlimit(RLIMIT_NOFILE, &setup.files);
  ResetSignals(setup.ignores_hangup);
  if (setup.cores_bytes > 0 && !posix::KeepTo(setup.cores, setup.cores_bytes)) ReportAndExit(setup, -errno);
  execve(setup.file, setup.argv, setup.environment);
  ReportAndExit(setup, errno);
}

bool IsThere(const std::string& file) {
  return access(file.c_str(), F_OK) == 0;
}

StartError ExecError(const std::string& file, int error) {
  std::string hint;
  if (error == ENOENT && IsThere(file)) {
    hint = " (the file exists, but the interpreter in its first line or its loader does not)";
  } else if (error == ENOEXEC) {
    hint = " (is it a script without a first line such as #!/bin/sh?)";
  } else if (error == E2BIG) {
    hint = " (arguments and environment together are too long)";
  }
  return {fmt::format("cannot start '{}': {}{}", file, std::strerror(error), hint),
          error == ENOENT || error == ENOTDIR ? kNotFound : kNotExecutable};
}

/// Waits until the program is running or has failed to start. Returns 0 or the error, in the form of
/// ChildSetup::report.
int ReadExecResult(int fd) {
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(fd, &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  return count == sizeof error ? error : 0;
}

}  // namespace

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string SignalName(int signal) {
  const std::string name = posix::SignalAbbreviation(signal);
  return !name.empty() ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

ExitStatus FromShellCode(int code) {
  constexpr int kKilled = 128;
  constexpr int kLastSignal = 31;  // the others are real-time signals, which rarely end a process
  if (code > kKilled && code <= kKilled + kLastSignal) return {.signal = code - kKilled};
  return {.code = code};
}

bool ExitStatus::was_taken_away() const {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGXCPU;
}

std::string ExitStatus::Describe() const {
  if (!story.empty()) return story;
  if (signal == 0) return fmt::format("exited with code {}", code);
  return fmt::format("was killed by signal {} ({}{})", signal, SignalName(signal),
                     core_dumped ? ", core dumped" : "");
}

Spawner::Spawner() : null_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  if (!null_) throw StartError(fmt::format("cannot open /dev/null: {}", std::strerror(errno)), 1);
  getrlimit(RLIMIT_NOFILE, &files_);
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  ignores_hangup_ = hangup.sa_handler == SIG_IGN;  // as under nohup; the processes inherit it
}

SpawnedProcess Spawner::Spawn(const SpawnRequest& request, int watchdog) const {
  Pipe out = MakePipe();
  Pipe err = MakePipe();
  Pipe in = request.reads_input ? MakePipe() : Pipe{};
  Pipe report = MakePipe();
  const std::vector<char*> argv = Pointers(request.argv);
  const std::vector<char*> environment = Pointers(request.environment);
  const CoreMask cores(request.cores);
  const ChildSetup setup{request.file.c_str(),
                         argv.data(),
                         environment.data(),
                         request.reads_input ? in.read.get() : null_.get(),
                         out.write.get(),
                         err.write.get(),
                         report.write.get(),
                         cores.words(),
                         cores.bytes(),
                         watchdog,
                         files_,
                         ignores_hangup_,
                         getpid()};
  pid_t pid = -1;
  {
    const posix::SignalsBlocked blocked;  // before exec, the child must not run this process's handlers
    pid = fork();
    if (pid == 0) RunChild(setup);
  }
  if (pid < 0) {
    throw StartError(fmt::format("cannot start '{}': {} (see the limit on processes: ulimit -u)",
                                 request.file, std::strerror(errno)),
                     1);
  }
  report.write.reset();
  if (const int error = ReadExecResult(report.read.get()); error != 0) {
    WithdrawGroup(watchdog, pid);
    Reap(pid);
    if (error < 0) {
      throw StartError(
          fmt::format(
              "cannot bind '{}' to {}: {}; these cores were available when dmlc-submit started (--bind none leaves the choice to the kernel)",
              request.file, NamedCores(request.cores), std::strerror(-error)),
          1);
    }
    throw ExecError(request.file, error);
  }
  return {pid, std::move(out.read), std::move(err.read), std::move(in.write)};
}

void Spawner::RaiseFileLimit(std::size_t needed) const {
  rlimit limit = files_;
  if (limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed) {
    throw std::runtime_error(fmt::format(
        "this job needs about {} open files at once, but the limit is {} (ulimit -Hn); raise it or start fewer processes",
        needed, limit.rlim_max));
  }
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    throw std::runtime_error(fmt::format("cannot raise the limit on open files from {} to {}: {}",
                                         files_.rlim_cur, limit.rlim_cur, std::strerror(errno)));
  }
}

std::optional<ExitStatus> PeekExit(pid_t pid) {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  if (info.si_code == CLD_EXITED) return ExitStatus{.code = info.si_status};
  return ExitStatus{.signal = info.si_status, .core_dumped = info.si_code == CLD_DUMPED};
}

void Reap(pid_t pid) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) {
  }
}

void SignalGroup(pid_t group, int signal) {
  kill(-group, signal);
}

void TerminateGroup(pid_t group) {
  SignalGroup(group, SIGTERM);
  SignalGroup(group, SIGCONT);
}

}  // namespace warren::submit
