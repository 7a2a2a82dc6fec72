#include "submit/process/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "posix/descriptor.h"
#include "posix/shortage.h"
#include "posix/sockets.h"
#include "submit/process/command.h"
#include "submit/process/environment.h"
#include "submit/process/process.h"

namespace warren::submit {
namespace {

using Clock = std::chrono::steady_clock;

/// Reads until end of file, a read error, the deadline, or more than kMostCaptured bytes. Returns true at end
/// of file or on a read error.
bool ReadUntil(int fd, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{fd, POLLIN, 0};
    if (left.count() <= 0 || text.size() > kMostCaptured) return false;
    const int ready = poll(&wait, 1, static_cast<int>(left.count()));
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;  // e.g. SIGWINCH; read would wait without a limit
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count == 0) return true;
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) return true;
  }
}

[[noreturn]] void ThrowShortage(const std::string& program, const char* call, int error) {
  throw std::runtime_error(fmt::format("cannot start '{}': {} failed: {}. {}", program, call,
                                       std::strerror(error), posix::ShortageAdvice(error)));
}

}  // namespace

Captured Capture(const std::vector<std::string>& words, const std::string& path,
                 std::chrono::milliseconds patience) {
  Captured captured;
  std::string file;
  try {
    file = FindCommand(words.front(), path).file;
  } catch (const CommandError&) {
    return captured;
  }
  std::array<int, 2> ends{};
  if (!posix::NewPipe(ends)) ThrowShortage(words.front(), "pipe", errno);
  const posix::Descriptor read_end(ends[0]);
  posix::Descriptor write_end(ends[1]);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  const std::vector<std::string> environment = InheritedWith({{"PATH", path}}, {});
  pid_t pid = -1;
  const int error = posix_spawn(&pid, file.c_str(), &files, &attributes, Pointers(words).data(),
                                Pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error == EAGAIN || (posix::IsLocalShortage(error) && !posix::ConcernsAddress(error)))
    ThrowShortage(words.front(), "posix_spawn", error);
  if (error != 0) return captured;
  write_end.reset();
  if (!ReadUntil(read_end.get(), Clock::now() + patience, captured.out)) {
    kill(pid, SIGKILL);
    captured.is_late = captured.out.size() <= kMostCaptured;
    if (captured.is_late) captured.out.clear();
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  captured.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return captured;
}

}  // namespace warren::submit
