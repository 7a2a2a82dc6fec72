// Descriptions of exit statuses, spawning processes that are bound to cores, and reading the output of a
// command.
#include "submit/process/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>

#include "submit/process/capture.h"

namespace warren::submit {
namespace {

using std::chrono::milliseconds;

TEST(ExitStatus, CodeIsThatOfAShell) {
  EXPECT_EQ((ExitStatus{3, 0, false}.ShellCode()), 3);
  EXPECT_EQ((ExitStatus{0, SIGKILL, false}.ShellCode()), 137);
  EXPECT_TRUE((ExitStatus{0, 0, false}.ok()));
  EXPECT_FALSE((ExitStatus{0, SIGTERM, false}.ok()));
}

TEST(ExitStatus, IsDescribedWithTheNameOfTheSignal) {
  EXPECT_EQ((ExitStatus{3, 0, false}.Describe()), "exited with code 3");
  EXPECT_EQ((ExitStatus{0, SIGSEGV, true}.Describe()), "was killed by signal 11 (SIGSEGV, core dumped)");
  EXPECT_EQ(SignalName(SIGRTMIN + 3), "signal 37");
}

/// Starts a process that prints the cores it may run on.
SpawnedProcess SpawnBound(const CoreList& cores, int watchdog) {
  return Spawner().Spawn({.file = "/bin/sh",
                          .argv = {"sh", "-c", "grep Cpus_allowed_list /proc/self/status"},
                          .environment = {"PATH=/usr/bin:/bin"},
                          .cores = cores},
                         watchdog);
}

TEST(Spawning, BindsToCores) {
#ifdef WARREN_PORTABLE
  GTEST_SKIP() << "processes cannot be bound to cores here";
#endif
  const posix::Descriptor watchdog(open("/dev/null", O_WRONLY | O_CLOEXEC));
  const int core = ReadHostCores().allowed.back();
  const SpawnedProcess process = SpawnBound({core}, watchdog.get());
  std::array<char, 100> text{};
  EXPECT_GT(read(process.out.get(), text.data(), text.size() - 1), 0);
  EXPECT_EQ(std::string(text.data()), "Cpus_allowed_list:\t" + std::to_string(core) + "\n");
  Reap(process.pid);
}

TEST(Spawning, SaysWhichCoresItCannotBindTo) {
  const posix::Descriptor watchdog(open("/dev/null", O_WRONLY | O_CLOEXEC));
  try {
    SpawnBound({4000, 4001}, watchdog.get());
    FAIL();
  } catch (const StartError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot bind '/bin/sh' to cores 4000-4001: "), std::string::npos)
        << error.what();
  }
}

TEST(Capture, KillsALateCommandThoughASignalArrivesWhileItWaits) {
  struct sigaction earlier {};
  struct sigaction ignore {};
  ignore.sa_handler = [](int) {};
  ignore.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &ignore, &earlier);
  const itimerval soon{{0, 0}, {0, 50'000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  const Captured captured = Capture({"sh", "-c", "exec sleep 5"}, "/usr/bin:/bin", milliseconds(200));
  EXPECT_TRUE(captured.is_late);
  EXPECT_EQ(captured.exit_code, 128 + SIGKILL);
  sigaction(SIGALRM, &earlier, nullptr);
}

}  // namespace
}  // namespace warren::submit
