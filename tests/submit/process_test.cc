// How the end of a process is told.
#include "submit/process/process.h"

#include <gtest/gtest.h>

#include <csignal>

namespace warren::submit {
namespace {

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

}  // namespace
}  // namespace warren::submit
