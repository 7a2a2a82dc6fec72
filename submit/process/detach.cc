#include "submit/process/detach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "posix/files.h"
#include "posix/private_file.h"
#include "posix/process.h"

namespace warren::submit {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{16} << 10;
/// The descriptor of the pipe to the starting process, in the new process.
constexpr int kPipe = STDERR_FILENO + 1;

[[noreturn]] void Throw(std::string_view what) {
  throw std::runtime_error(fmt::format("--detach: {}: {}", what, std::strerror(errno)));
}

/// Copies the whole file, without using its offset, which another process may share.
bool CopyAll(int file, int to) {
  std::array<char, kPieceBytes> piece{};
  for (off_t offset = 0;;) {
    const ssize_t count = pread(file, piece.data(), piece.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    if (!posix::WriteAll(to, {piece.data(), static_cast<std::size_t>(count)})) return false;
    offset += count;
  }
}

/// A new file without a name, for output that the starting process may have to show.
posix::Descriptor NamelessFile() {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) Throw("cannot create a temporary file");
  posix::Descriptor own(fcntl(fileno(file), F_DUPFD_CLOEXEC, 0));
  std::fclose(file);
  if (!own) Throw("cannot create a temporary file");
  return own;
}

/// Leaves the terminal, and closes the descriptors inherited from the starting process: an inherited pipe of
/// an ssh session, for example, would make its reader wait until the job ends. Returns the pipe to the
/// starting process.
posix::Descriptor LeaveStarter(int pipe, int output) {
  setsid();
  posix::SignalAtParentsEnd(SIGTERM);  // Begin turns this off
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  dup2(pipe, kPipe);
  posix::CloseFrom(kPipe + 1);
  fcntl(kPipe, F_SETFD, FD_CLOEXEC);
  return posix::Descriptor(kPipe);
}

std::string ReadAll(int pipe) {
  std::string text;
  std::array<char, 256> piece{};
  for (;;) {
    const ssize_t count = read(pipe, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
}

/// The exit code of a process that ended before the job began.
int ExitCodeOf(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  fmt::print(stderr, "dmlc-submit: error: the launcher was ended by SIG{} before the job began\n",
             posix::SignalAbbreviation(signal));
  return 128 + signal;
}

}  // namespace

void Detached::Begin(const std::string& id, const std::string& log) {
  const posix::Descriptor file = posix::OpenPrivate(log.c_str(), O_APPEND | O_TRUNC);
  if (!file || !CopyAll(STDOUT_FILENO, file.get())) Throw(fmt::format("cannot write '{}'", log));
  posix::SignalAtParentsEnd(0);
  if (!posix::WriteAll(starter_.get(), id + '\n')) Throw("the process that started the job has ended");
  starter_.reset();
  dup2(file.get(), STDOUT_FILENO);
  dup2(file.get(), STDERR_FILENO);
}

int Detach(const std::function<int(Detached&)>& go_on) {
  posix::Descriptor output = NamelessFile();
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) Throw("cannot create a pipe");
  posix::Descriptor from_new(ends[0]);
  posix::Descriptor to_starter(ends[1]);
  const pid_t process = fork();
  if (process < 0) Throw("cannot start another process");
  if (process == 0) {
    Detached detached(LeaveStarter(to_starter.get(), output.get()));
    // LeaveStarter has closed these, and their numbers may be reused.
    for (posix::Descriptor* const closed : {&output, &from_new, &to_starter}) (void)closed->release();
    return go_on(detached);
  }
  to_starter.reset();
  const std::string id = ReadAll(from_new.get());
  CopyAll(output.get(), STDERR_FILENO);
  if (!id.ends_with('\n')) return ExitCodeOf(process);
  if (!posix::WriteAll(STDOUT_FILENO, id)) {
    fmt::print(stderr, "dmlc-submit: warning: cannot print the job's ID, {}", id);
  }
  return EXIT_SUCCESS;
}

}  // namespace warren::submit
