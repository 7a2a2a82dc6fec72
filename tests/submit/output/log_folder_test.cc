// Log folders: creating them, locking them, moving away the logs of an earlier job, and links named by rank.
#include "submit/output/log_folder.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>

#include "tests/temporary_folder.h"

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
namespace fs = std::filesystem;

class LogFolder : public testing::Test {
 protected:
  void Make(const std::string& name) const { folder_.Write(name, name); }
  std::set<std::string> Names(const std::string& folder = ".") const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_ / folder)) names.insert(entry.path().filename());
    return names;
  }

  const TemporaryFolder folder_;
  const fs::path& path_ = folder_.path();
};

TEST(LogName, IsAWholeName) {
  for (const char* const name : {"worker-0.log", "worker-12.stack", "server-3.log", "scheduler.log",
                                 "scheduler.stack", "tracker.log", "launcher.log", "job.html"}) {
    EXPECT_TRUE(IsLogName(name)) << name;
  }
  for (const char* const name :
       {"", ".log", "worker.log", "worker-.log", "worker-1.txt", "worker-1.log.1", "my-worker-1.log",
        "worker--1.log", "worker-1a.log", "slurm-12.log", "tracker.stack", "train.log", "jobs", "earlier"}) {
    EXPECT_FALSE(IsLogName(name)) << name;
  }
}

TEST_F(LogFolder, IsMadeAndANewOneHasNothingToMove) {
  (void)BeginLogFolder(folder_ / "a/b");
  EXPECT_TRUE(Names("a/b").empty());
  Make("file");
  EXPECT_THROW((void)BeginLogFolder(folder_ / "file/b"), std::runtime_error);
}

TEST_F(LogFolder, KeepsTheFilesOfTheJobBeforeAndOfNoOther) {
  for (const char* const name : {"worker-0.log", "worker-1.log", "worker-1.stack", "tracker.log"}) Make(name);
  (void)BeginLogFolder(path_);
  EXPECT_THAT(Names(), ElementsAre("earlier"));
  EXPECT_THAT(Names("earlier"), ElementsAre("tracker.log", "worker-0.log", "worker-1.log", "worker-1.stack"));
  (void)BeginLogFolder(path_);  // the last job wrote no logs, so the earlier ones stay
  EXPECT_EQ(Names("earlier").size(), 4U);
  Make("worker-0.log");
  Make("earlier/mine");
  (void)BeginLogFolder(path_);
  EXPECT_THAT(Names("earlier"), ElementsAre("mine", "worker-0.log"));
}

TEST_F(LogFolder, IsOfOneJobAtATime) {
  {
    const posix::Descriptor lock = BeginLogFolder(path_);
    Make("worker-0.log");
    EXPECT_THAT([this] { (void)BeginLogFolder(path_); },
                ThrowsMessage<std::runtime_error>(HasSubstr("another running job has its logs in")));
    EXPECT_THAT(Names(), ElementsAre("worker-0.log"));
  }
  (void)BeginLogFolder(path_);
  EXPECT_THAT(Names("earlier"), ElementsAre("worker-0.log"));
}

TEST_F(LogFolder, LeavesEverythingElse) {
  Make("notes.txt");
  Make("slurm-12.log");
  fs::create_directory(folder_ / "worker-0.log");
  fs::create_symlink("notes.txt", folder_ / "worker-1.log");
  (void)BeginLogFolder(path_);
  EXPECT_THAT(Names(), ElementsAre("notes.txt", "slurm-12.log", "worker-0.log", "worker-1.log"));
}

TEST_F(LogFolder, HasALinkForEachRankWhoseNumberIsNotThatOfItsWorker) {
  Make("worker-0.log");
  Make("worker-1.log");
  EXPECT_TRUE(LinkRank(path_, 0, "1"));
  EXPECT_TRUE(LinkRank(path_, 1, "0"));
  EXPECT_TRUE(LinkRank(path_, 2, "2"));
  EXPECT_TRUE(LinkRank(path_, 3, "../../evil"));
  EXPECT_THAT(Names(), ElementsAre("rank-0.log", "rank-1.log", "worker-0.log", "worker-1.log"));
  EXPECT_EQ(fs::read_symlink(folder_ / "rank-0.log"), "worker-1.log");
  EXPECT_TRUE(LinkRank(path_, 1, "1"));
  EXPECT_THAT(Names(), ElementsAre("rank-0.log", "worker-0.log", "worker-1.log"));
  EXPECT_FALSE(LinkRank(folder_ / "nothing", 0, "1"));
  Make("rank-x.log");
  (void)BeginLogFolder(path_);
  EXPECT_THAT(Names(), ElementsAre("earlier", "rank-x.log"));
  EXPECT_EQ(fs::read_symlink(folder_ / "earlier/rank-0.log"), "worker-1.log");
}

TEST_F(LogFolder, LosesNothingWhereTheyCannotBeMoved) {
  Make("earlier");
  Make("worker-3.log");
  (void)BeginLogFolder(path_);
  EXPECT_THAT(Names(), ElementsAre("earlier", "worker-3.log"));
}

}  // namespace
}  // namespace warren::submit
