#include "submit/process/watchdog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "posix/process.h"
#include "posix/shortage.h"
#include "posix/sockets.h"
#include "posix/thread.h"
#include "submit/process/orphans.h"
#include "submit/process/process.h"

namespace warren::submit {
namespace {

constexpr char kName[] = "warren-watchdog";  // 15 characters, the maximum of a process name
constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::chrono::milliseconds kDismissLimit{2000};

/// A message to the watchdog. Each write to the pipe is shorter than PIPE_BUF and therefore atomic.
struct Notice {
  enum Kind : std::int32_t { kGone, kCame, kCleanupCommand };
  std::int32_t number;  ///< the group; for kCleanupCommand, the length in bytes of the command that follows,
                        ///< padded to whole notices
  Kind kind;
};
constexpr std::size_t kMaxCleanupCommandBytes = PIPE_BUF - 2 * sizeof(Notice);

/// Everything to clean up when dmlc-submit dies.
struct Leftovers {
  std::set<pid_t> groups;
  std::string cleanup_command;  ///< run by a shell
};

void Send(int pipe, std::string_view bytes) {
  // A full or broken pipe means that the watchdog is stuck or dead; nothing can be done about it here.
  const ssize_t ignored = write(pipe, bytes.data(), bytes.size());
  static_cast<void>(ignored);
}

void Send(int pipe, const Notice& notice) {
  Send(pipe, std::string_view(reinterpret_cast<const char*>(&notice), sizeof notice));
}

/// Overwrites the command line that `ps` shows and `pkill -f` matches. Does nothing if /proc does not give
/// its address.
void HideCommandLine() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 48; ++field) fields >> skipped;
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  if (!(fields >> start >> end) || start == 0 || end <= start) return;
  char* const arguments = reinterpret_cast<char*>(start);  // NOLINT(performance-no-int-to-ptr)
  std::memset(arguments, 0, end - start);
  std::strncpy(arguments, kName, end - start - 1);
}

/// Separates the watchdog from dmlc-submit: makes a new session, and changes its name and descriptors, so
/// that nothing that happens to dmlc-submit or its terminal affects it. Moves `pipe` to the returned
/// descriptor, the only one left open.
int Detach(int pipe) {
  setsid();
  posix::SetName(kName);
  HideCommandLine();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU}) {
    std::signal(signal, SIG_IGN);
  }
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(pipe, STDIN_FILENO);
  posix::CloseFrom(STDIN_FILENO + 1);
  if (chdir("/") != 0) return STDIN_FILENO;  // keeps no other file system busy; may fail
  return STDIN_FILENO;
}

std::size_t InWholeNotices(std::size_t bytes) {
  return (bytes + sizeof(Notice) - 1) / sizeof(Notice);
}

/// Reads the notices until dmlc-submit is gone, and returns the leftovers.
Leftovers Watch(int pipe) {
  Leftovers left;
  std::array<Notice, 512> notices{};
  std::size_t held = 0;   // bytes; the last notice may be incomplete
  std::size_t words = 0;  // bytes of a cleanup command still to come
  for (;;) {
    char* const bytes = reinterpret_cast<char*>(notices.data());
    const ssize_t count = read(pipe, bytes + held, sizeof notices - held);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return left;
    held += static_cast<std::size_t>(count);
    const std::size_t whole = held / sizeof(Notice);
    for (std::size_t i = 0; i < whole; ++i) {
      const Notice& notice = notices[i];
      if (words > 0) {
        const std::size_t part = std::min(words, sizeof notice);
        left.cleanup_command.append(reinterpret_cast<const char*>(&notice), part);
        words -= part;
      } else if (notice.kind == Notice::kCleanupCommand) {
        words = static_cast<std::size_t>(notice.number);
        left.cleanup_command.clear();
      } else if (notice.kind == Notice::kCame) {
        left.groups.insert(notice.number);
      } else {
        left.groups.erase(notice.number);
      }
    }
    held -= whole * sizeof(Notice);
    std::memmove(bytes, bytes + whole * sizeof(Notice), held);
  }
}

/// Replaces the watchdog process with the command. Returns if there is no command or it cannot be executed.
void RunCleanupCommand(const std::string& command) {
  if (command.empty()) return;
  // Only standard input is open; it is the pipe. The command gets /dev/null for all three streams.
  const int null = open("/dev/null", O_RDWR);
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) dup2(null, fd);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_DFL);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
}

/// Ends the groups, and the processes that have left their group but not their session.
void EndGroups(const std::set<pid_t>& announced) {
  std::set<pid_t> groups = announced;
  for (const pid_t group : groups) TerminateGroup(group);
  for (const pid_t escaped : EscapedFromGroups(announced)) {
    kill(escaped, SIGTERM);
    kill(escaped, SIGCONT);
  }
  const auto end = std::chrono::steady_clock::now() + kStopGrace;
  bool escaped_left = true;
  while ((!groups.empty() || escaped_left) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPollInterval);
    escaped_left = !EscapedFromGroups(announced).empty();
    for (auto group = groups.begin(); group != groups.end();) {
      group = kill(-*group, 0) != 0 && errno == ESRCH ? groups.erase(group) : std::next(group);
    }
  }
  for (const pid_t group : groups) SignalGroup(group, SIGKILL);
  for (const pid_t escaped : EscapedFromGroups(announced)) kill(escaped, SIGKILL);
}

}  // namespace

void AnnounceGroup(int pipe, pid_t group) {
  Send(pipe, Notice{group, Notice::kCame});
}
void WithdrawGroup(int pipe, pid_t group) {
  Send(pipe, Notice{group, Notice::kGone});
}

Watchdog::Watchdog() {
  Start();
}

void Watchdog::Start() {
  std::array<int, 2> ends{};
  if (!posix::NewPipe(ends)) {
    const int error = errno;
    throw std::runtime_error(fmt::format("cannot create a pipe to the watchdog: {}. {}", std::strerror(error),
                                         posix::ShortageAdvice(error)));
  }
  posix::Descriptor read_end(ends[0]);
  pipe_.reset(ends[1]);
  // Never wait for a stuck watchdog; the pipe holds notices for thousands of processes.
  fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
  {
    const posix::SignalsBlocked blocked;  // the child must not run the parent's handlers
    pid_ = fork();
    if (pid_ == 0) {
      const Leftovers left = Watch(Detach(read_end.get()));
      EndGroups(left.groups);
      RunCleanupCommand(left.cleanup_command);
      _exit(0);
    }
  }
  if (pid_ < 0) {
    const int error = errno;
    throw std::runtime_error(
        fmt::format("cannot start the watchdog: {}. {}", std::strerror(error), posix::ShortageAdvice(error)));
  }
}

bool Watchdog::SetCleanupCommand(const std::string& commands) {
  if (commands.size() > kMaxCleanupCommandBytes) return false;
  cleanup_command_ = commands;
  SendCleanupCommand();
  return true;
}

void Watchdog::SendCleanupCommand() const {
  const Notice notice{static_cast<std::int32_t>(cleanup_command_.size()), Notice::kCleanupCommand};
  std::string bytes(reinterpret_cast<const char*>(&notice), sizeof notice);
  bytes += cleanup_command_;
  bytes.resize((1 + InWholeNotices(cleanup_command_.size())) * sizeof notice);
  Send(pipe_.get(), bytes);
}

void Watchdog::ReplaceIfDead(const std::vector<pid_t>& groups) {
  if (waitpid(pid_, nullptr, WNOHANG) != pid_) return;
  spdlog::warn("the watchdog process {} was killed; starting another", pid_);
  Start();
  for (const pid_t group : groups) AnnounceGroup(pipe(), group);
  SendCleanupCommand();
}

Watchdog::~Watchdog() {
  pipe_.reset();
  const auto end = std::chrono::steady_clock::now() + kDismissLimit;
  while (waitpid(pid_, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace warren::submit
