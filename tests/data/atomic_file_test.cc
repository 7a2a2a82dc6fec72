// Files appear whole or not at all.
#include "data/cache/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "tests/temporary_folder.h"

namespace warren {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }

  const TemporaryFolder folder_;
};

TEST_F(AtomicFileTest, TheTargetChangesOnlyOnCommit) {
  WriteWholeFile(Path("f"), "old");
  AtomicFile file(Path("f"));
  file.Write("new");
  EXPECT_EQ(ReadFile(Path("f")), "old");
  file.Commit();
  EXPECT_EQ(ReadFile(Path("f")), "new");
  EXPECT_EQ(folder_.Files(), 1u);
}

TEST_F(AtomicFileTest, WithoutCommitNothingStays) {
  WriteWholeFile(Path("f"), "old");
  { AtomicFile(Path("f")).Write("new"); }
  EXPECT_EQ(ReadFile(Path("f")), "old");
  EXPECT_EQ(folder_.Files(), 1u);
}

TEST_F(AtomicFileTest, AMovedFromFileLeavesTheNewOwnersFileAlone) {
  AtomicFile first(Path("f"));
  first.Write("a");
  AtomicFile second(std::move(first));
  second.Write("b");
  second.Commit();
  EXPECT_EQ(ReadFile(Path("f")), "ab");
}

TEST_F(AtomicFileTest, ALinkIsFollowedAndStays) {
  WriteWholeFile(Path("real"), "old");
  fs::create_symlink("real", Path("link"));
  WriteWholeFile(Path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("real")), "new");
}

TEST_F(AtomicFileTest, ADeviceIsWrittenInPlaceAndStaysADevice) {
  WriteWholeFile("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(AtomicFileTest, AFullDeviceIsAnErrorWithTheReason) {
  try {
    WriteWholeFile("/dev/full", "x");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot write /dev/full: No space left on device");
  }
}

TEST_F(AtomicFileTest, LeftoversOfTheTargetAreRemovedAndNothingElse) {
  for (const char* name : {"f.1.tmp", "f.22.tmp", "f.x.tmp", "f..tmp", "g.1.tmp", "f.tmp", "f"}) {
    folder_.Write(name, "x");
  }
  RemoveLeftovers(Path("f"));
  std::vector<std::string> left;
  for (const char* name : {"f.1.tmp", "f.22.tmp", "f.x.tmp", "f..tmp", "g.1.tmp", "f.tmp", "f"}) {
    if (fs::exists(Path(name))) left.emplace_back(name);
  }
  EXPECT_EQ(left, (std::vector<std::string>{"f.x.tmp", "f..tmp", "g.1.tmp", "f.tmp", "f"}));
}

TEST_F(AtomicFileTest, TwoWritersOfOneTargetDoNotDisturbEachOther) {
  AtomicFile first(Path("f"));
  first.Write("the first, ");
  RemoveLeftovers(Path("f"));  // removes nothing, since the first writer is alive
  AtomicFile second(Path("f"));
  second.Write("the second");
  first.Write("whole");
  first.Commit();
  EXPECT_EQ(ReadFile(Path("f")), "the first, whole");
  second.Commit();
  EXPECT_EQ(ReadFile(Path("f")), "the second");
  EXPECT_EQ(folder_.Files(), 1u);
}

TEST_F(AtomicFileTest, WhatAKilledWriterLeftIsRemoved) {
  const pid_t writer = fork();
  if (writer == 0) {
    AtomicFile file(Path("f"));
    file.Write("half");
    _exit(0);  // skips the destructor
  }
  ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
  ASSERT_EQ(folder_.Files(), 1u);
  RemoveLeftovers(Path("f"));
  EXPECT_EQ(folder_.Files(), 0u);
}

TEST_F(AtomicFileTest, ATargetThatCannotBeWrittenIsKnownBefore) {
  EXPECT_NO_THROW(RequireWritable(Path("new")));
  EXPECT_THROW(RequireWritable(Path("no/such/folder")), std::runtime_error);
  EXPECT_THROW(RequireWritable(Path("")), std::runtime_error);
}

}  // namespace
}  // namespace warren
