// The history of jobs: the text of a record, the removal of old records, and the handling of file errors,
// which must not affect jobs.
#include "submit/monitor/history.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "posix/folder_lock.h"
#include "submit/monitor/recorded_jobs.h"
#include "submit/process/whole_file.h"
#include "tests/temporary_folder.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A job that began on 2026-11-27 at 01:02:03.456 UTC.
JobRecord Example() {
  JobRecord record;
  record.name = "train.py";
  record.command = {"python3", "train.py", "a b"};
  record.directory = "/home/alice/model";
  record.host = "node1";
  record.pid = 4711;
  record.boot = "5b3c2f4e-0d1a-4c5b-8e9f-0a1b2c3d4e5f";
  record.cluster = "ssh";
  record.workers = 8;
  record.began = std::chrono::system_clock::time_point(std::chrono::milliseconds(1795741323456));
  record.log_dir = "/home/alice/logs";
  return record;
}

RecordedEnd Failure() {
  return {83.25,
          3,
          HowEnded::kFailed,
          "worker 3 (host node2, pid 99) exited with code 3; the other 7 processes were stopped",
          FailedBy{"worker 3", 5, "node2"},
          2,
          "/home/alice/logs/job.html"};
}

/// Sets $XDG_STATE_HOME to a folder in a new temporary directory.
class HistoryFiles : public testing::Test {
 protected:
  HistoryFiles() { setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1); }
  ~HistoryFiles() override { unsetenv("XDG_STATE_HOME"); }

  fs::path jobs() const { return folder_ / "state/warren/jobs"; }
  fs::path FileOf(const JobRecord& record) const { return jobs() / (JobId(record) + ".json"); }
  /// Writes as many records of 2025 as may be kept.
  void WriteRecords() const {
    fs::create_directories(jobs());
    for (std::size_t pid = 0; pid < kMostRecords; ++pid)
      std::ofstream(jobs() / ("20250101T000000Z-" + std::to_string(pid) + ".json")) << "{}";
  }

  const TemporaryFolder folder_;
};

TEST(History, ARecordIsTheTextThatPythonReads) {
  JobRecord record = Example();
  record.end = Failure();
  EXPECT_EQ(RecordText(record), ReadWholeFile(WARREN_HISTORY_EXAMPLES "/failed.json"));
}

TEST(History, ARecordOfAJobThatRunsSaysNothingOfAnEnd) {
  EXPECT_THAT(RecordText(Example()), Not(HasSubstr("exit_code")));
}

TEST(History, ARecordOfAJobThatRunsHasTheAddressOfItsPage) {
  JobRecord record = Example();
  record.dashboard = "http://127.0.0.1:8080/#hidden";
  record.detached = true;
  EXPECT_THAT(RecordText(record), HasSubstr("\"dashboard\": \"http://127.0.0.1:8080/#hidden\""));
  EXPECT_THAT(RecordText(record), HasSubstr("\"detached\": true"));
}

TEST(History, BytesThatAreNoTextAreReplaced) {
  JobRecord record = Example();
  record.command = {"a\xff"};
  EXPECT_THAT(RecordText(record), HasSubstr("a\xef\xbf\xbd"));
}

TEST(History, AFileIsNamedByTimeAndProcess) {
  EXPECT_EQ(JobId(Example()), "20261127T010203Z-4711");
}

TEST(History, TheOldestRecordsGoAndNothingElse) {
  EXPECT_THAT(
      OutdatedRecords({"20261127T010203Z-1.json", "20251127T010203Z-1.json", "00000000T000000Z-x.json",
                       "20261127T010203Z-2.json", "a.json", "20251127T010203Z-1.json.new"},
                      2),
      ElementsAre("20251127T010203Z-1"));
  EXPECT_THAT(OutdatedRecords({"20261127T010203Z-1.json", "20251127T010203Z-1.json"}, 2), IsEmpty());
}

TEST(History, TheFolderIsTheOneOfTheXdgSpecification) {
  EXPECT_EQ(HistoryFolder("/s", "/h"), "/s/warren/jobs");
  EXPECT_EQ(HistoryFolder("relative", "/h"), "/h/.local/state/warren/jobs");
  EXPECT_EQ(HistoryFolder(nullptr, "/h"), "/h/.local/state/warren/jobs");
  EXPECT_EQ(HistoryFolder("", nullptr), "");
}

TEST_F(HistoryFiles, AJobIsThereFromItsBeginningAndReplacedAtItsEnd) {
  JobRecord record = Example();
  record.log_dir = folder_ / "logs";
  History history(record);
  const std::string file = FileOf(record);
  const std::string beside_logs = folder_ / ("logs/jobs/" + JobId(record) + ".json");
  EXPECT_EQ(ReadWholeFile(file), RecordText(record, true));
  EXPECT_THAT(ReadWholeFile(file), HasSubstr("\"locked\": true"));
  for (const std::string& one : {file, beside_logs}) {
    const posix::Descriptor reader(open(one.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(flock(reader.get(), LOCK_SH | LOCK_NB), -1) << one;
    EXPECT_EQ(errno, EWOULDBLOCK);
  }
  history.End(Failure());
  record.end = Failure();
  EXPECT_EQ(ReadWholeFile(file), RecordText(record));
  EXPECT_EQ(ReadWholeFile(beside_logs), RecordText(record));
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(std::distance(fs::directory_iterator(jobs()), {}), 1);
}

TEST_F(HistoryFiles, OnlyTheLatestAreKept) {
  WriteRecords();
  const History history(Example());
  EXPECT_EQ(static_cast<std::size_t>(std::distance(fs::directory_iterator(jobs()), {})), kMostRecords);
  EXPECT_TRUE(fs::exists(FileOf(Example())));
}

TEST_F(HistoryFiles, LogsNextToARecordGoWithItUnlessTheirJobStillRuns) {
  const fs::path old = jobs() / "20240101T000000Z-1";
  const fs::path running = jobs() / "20240101T000000Z-2";
  for (const fs::path& logs : {old, running}) {
    fs::create_directories(logs);
    std::ofstream(logs / "worker-0.log") << "a line";
    std::ofstream(logs.string() + ".json") << "{}";
    std::ofstream(logs.string() + ".evaluations.json") << "{}";
  }
  WriteRecords();
  const auto lock = posix::LockFolder(running);
  const History history(Example());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_FALSE(fs::exists(old.string() + ".json"));
  EXPECT_FALSE(fs::exists(old.string() + ".evaluations.json"));
  EXPECT_TRUE(fs::exists(running / "worker-0.log"));
  EXPECT_TRUE(fs::exists(running.string() + ".json"));
}

TEST_F(HistoryFiles, ARecordWhoseJobStillRunsIsKeptHoweverOldItIs) {
  JobRecord old = Example();
  old.began -= std::chrono::hours(24 * 1000);
  old.log_dir.clear();
  std::optional<History> running(old);
  WriteRecords();
  const History history(Example());
  EXPECT_TRUE(fs::exists(FileOf(old)));
  EXPECT_FALSE(fs::exists(jobs() / "20250101T000000Z-0.json"));
  running.reset();
  History(Example()).End(Failure());
  EXPECT_FALSE(fs::exists(FileOf(old)));
}

TEST_F(HistoryFiles, AFolderThatCannotBeMadeIsNoTroubleOfTheJob) {
  std::ofstream(folder_ / "state") << "a file";
  JobRecord record = Example();
  record.log_dir.clear();
  EXPECT_NO_THROW(History(record).End(Failure()));
  EXPECT_THAT(History(record).error(), HasSubstr("cannot record the job"));
}

TEST_F(HistoryFiles, AJobWhoseEndCannotBeRecordedIsNotTakenForAKilledOne) {
  JobRecord record = Example();
  record.log_dir.clear();
  History history(record);
  ASSERT_TRUE(fs::exists(FileOf(record)));
  fs::create_directory(FileOf(record).string() + ".new");  // the new record cannot be written
  history.End(Failure());
  EXPECT_FALSE(fs::exists(FileOf(record)));
  EXPECT_THAT(history.error(), HasSubstr("cannot record the job"));
}

TEST_F(HistoryFiles, ThePageOfAnotherJobReadsRecordsNewestFirst) {
  History running(Example());
  running.KeepEvaluations("{\"evaluations\":[]}");
  std::ofstream(jobs() / "20270101T000000Z-1.json") << "{}";
  std::ofstream(jobs() / "notes.json") << "{}";
  fs::create_directories(jobs() / "20270101T000000Z-2.json");
  const auto listed = nlohmann::json::parse(RecordedJobsJson(jobs().string(), 9));
  ASSERT_EQ(listed.size(), 2U) << listed;
  EXPECT_EQ(listed[0],
            nlohmann::json::parse(
                R"({"id": "20270101T000000Z-1", "held": false, "curves": false, "record": "{}"})"));
  EXPECT_EQ(listed[1]["id"], JobId(Example()));
  EXPECT_EQ(listed[1]["held"], true);
  EXPECT_EQ(listed[1]["curves"], true);
  EXPECT_EQ(listed[1]["record"], RecordText(Example(), true));
  EXPECT_EQ(nlohmann::json::parse(RecordedJobsJson(jobs().string(), 1)).size(), 1U);
  EXPECT_EQ(RecordedJobsJson(folder_ / "none", 9), "[]");
  EXPECT_EQ(RecordedEvaluations(jobs().string(), JobId(Example())), "{\"evaluations\":[]}");
  EXPECT_EQ(RecordedEvaluations(jobs().string(), "20270101T000000Z-1"), std::nullopt);
  EXPECT_EQ(RecordedEvaluations(jobs().string(), "../jobs/" + JobId(Example())), std::nullopt);
  EXPECT_EQ(RecordedPage(jobs().string(), JobId(Example())), std::nullopt);
  running.End(Failure());
  EXPECT_EQ(nlohmann::json::parse(RecordedJobsJson(jobs().string(), 9))[1]["held"], false);
}

TEST_F(HistoryFiles, TheListOfRecordsHasALimit) {
  fs::create_directories(jobs());
  for (int pid = 0; pid < 20; ++pid) {
    std::ofstream(jobs() / ("20250101T000000Z-" + std::to_string(pid + 10) + ".json"))
        << std::string(1 << 20, ' ');
  }
  const std::string listed = RecordedJobsJson(jobs().string(), 200);
  EXPECT_LT(listed.size(), std::size_t{9} << 20);
  EXPECT_EQ(nlohmann::json::parse(listed).size(), 7U);
}

TEST(History, WhatTheMachineKnowsOfThisProcess) {
  const JobRecord record = RecordOfThisProcess(Example().began);
  EXPECT_EQ(record.began, Example().began);
  EXPECT_EQ(record.pid, getpid());
  EXPECT_EQ(record.boot, ReadWholeFile("/proc/sys/kernel/random/boot_id").substr(0, 36));
  EXPECT_EQ(record.directory, fs::current_path());
  EXPECT_FALSE(record.host.empty());
}

}  // namespace
}  // namespace warren::submit
