// Finding processes that have left their process group but not their session, while others start and end.
#include "submit/process/orphans.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

namespace warren::submit {
namespace {

constexpr int kLooks = 600;
constexpr int kBusy = 3;
constexpr pid_t kNobodysSession = 0x7ffffffe;

TEST(EscapedFromGroups, ThatProcessesEndMeanwhileIsNoError) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int i = 0; i < kBusy; ++i) {
    others.emplace_back([&] {
      while (!stop) {
        const pid_t pid = fork();
        if (pid == 0) _exit(0);
        waitpid(pid, nullptr, 0);
      }
    });
  }
  for (int i = 0; i < kLooks; ++i) EXPECT_TRUE(EscapedFromGroups({kNobodysSession}).empty());
  stop = true;
  for (std::thread& other : others) other.join();
}

TEST(EscapedFromGroups, AreThoseThatLeftTheirGroupButNotTheirSession) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t leader = fork();
  if (leader == 0) {
    setsid();
    if (fork() == 0) {
      setpgid(0, 0);
      const pid_t self = getpid();
      if (write(ready[1], &self, sizeof self) < 0) _exit(1);
    }
    pause();
    _exit(0);
  }
  pid_t escaped = 0;
  ASSERT_EQ(read(ready[0], &escaped, sizeof escaped), static_cast<ssize_t>(sizeof escaped));
  EXPECT_EQ(EscapedFromGroups({leader}), std::vector<pid_t>{escaped});
  kill(escaped, SIGKILL);
  kill(leader, SIGKILL);
  waitpid(leader, nullptr, 0);
}

}  // namespace
}  // namespace warren::submit
