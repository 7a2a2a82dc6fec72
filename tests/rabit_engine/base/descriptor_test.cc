// A CloseOnForkDescriptor closes its descriptor exactly once, and it does so in forked processes, too.
#include "rabit_engine/base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace warren {
namespace {

constexpr int kLimitMs = 10'000;  // generous: the operations take milliseconds

bool IsOpen(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

std::pair<CloseOnForkDescriptor, CloseOnForkDescriptor> Connection() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return {CloseOnForkDescriptor(ends[0]), CloseOnForkDescriptor(ends[1])};
}

/// Forks a process that runs `function`. Returns the process's exit code, or -1 if a signal killed it.
template <typename Function>
int ExitCodeOfFork(Function&& function) {
  const pid_t child = fork();
  if (child == 0) _exit(function());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CloseOnForkDescriptor, ClosesWhatItOwnsOnce) {
  auto [end, other] = Connection();
  const int fd = end.fd();
  CloseOnForkDescriptor moved = std::move(end);
  end.Close();
  EXPECT_TRUE(IsOpen(fd));
  moved.Close();
  EXPECT_FALSE(IsOpen(fd));
  EXPECT_FALSE(moved);
}

TEST(CloseOnForkDescriptor, IsClosedInAForkedProcess) {
  auto [end, other] = Connection();
  EXPECT_EQ(
      ExitCodeOfFork([&end = end, &other = other] { return IsOpen(end.fd()) || IsOpen(other.fd()) ? 1 : 0; }),
      0);
  EXPECT_TRUE(IsOpen(end.fd()));
  EXPECT_TRUE(IsOpen(other.fd()));
}

TEST(CloseOnForkDescriptor, OfAForkedProcessLeavesANumberThatANewOneHasThere) {
  auto [end, other] = Connection();
  EXPECT_EQ(ExitCodeOfFork([&end = end] {
              const int fd = end.fd();
              if (dup2(STDERR_FILENO, fd) != fd) return 1;
              const CloseOnForkDescriptor fresh(fd);
              end.Close();
              return IsOpen(fd) ? 0 : 2;
            }),
            0);
}

TEST(CloseOnForkDescriptor, ThatWasReleasedStaysWithItsNewOwnerInAForkedProcess) {
  auto [end, other] = Connection();
  const int fd = end.Release();
  EXPECT_EQ(ExitCodeOfFork([fd] { return IsOpen(fd) ? 0 : 1; }), 0);
  close(fd);
}

TEST(CloseOnForkDescriptor, AnEndIsSeenWhileAForkedProcessLives) {
  auto [end, other] = Connection();
  std::array<int, 2> leave{};
  ASSERT_EQ(pipe(leave.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(leave[1]);
    char byte = 0;
    _exit(static_cast<int>(read(leave[0], &byte, 1)));
  }
  end.Close();
  pollfd stream{other.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&stream, 1, kLimitMs), 1) << "the child keeps the stream open";
  close(leave[1]);
  close(leave[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace warren
