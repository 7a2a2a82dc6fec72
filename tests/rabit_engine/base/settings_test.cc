#include "rabit_engine/base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"

namespace warren {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Each test sees only the environment variables that it sets.
class ReadingSettings : public testing::Test {
 protected:
  ReadingSettings() { clearenv(); }
  static void Set(const char* name, const char* value) { setenv(name, value, 1); }
  static Settings Read(const std::vector<std::string>& arguments = {}) { return ReadSettings(arguments); }
  static std::string ErrorOf(const std::vector<std::string>& arguments) {
    try {
      ReadSettings(arguments);
    } catch (const Misuse& error) {
      return error.what();
    }
    return "no Misuse";
  }
};

TEST_F(ReadingSettings, NothingSetGivesTheDefaults) {
  const Settings settings = Read();
  EXPECT_EQ(settings.tracker_host, "");
  EXPECT_EQ(settings.tracker_port, 9000);
  EXPECT_EQ(settings.task_id, "NULL");
  EXPECT_EQ(settings.world_size, -1);
  EXPECT_EQ(settings.engine, EngineKind::kNative);
  EXPECT_EQ(settings.bootstrap, BootstrapKind::kAuto);
  EXPECT_EQ(settings.collective_timeout.count(), 0);
  EXPECT_TRUE(settings.reproducible);
}

TEST_F(ReadingSettings, TheEnvironmentIsRead) {
  Set("DMLC_TRACKER_URI", "10.0.0.1");
  Set("DMLC_TRACKER_PORT", "9091");
  Set("DMLC_TASK_ID", "12");
  Set("DMLC_NUM_ATTEMPT", "2");
  Set("DMLC_WORKER_CONNECT_RETRY", "9");
  Set("WARREN_ENGINE", "mpi");
  Set("WARREN_BOOTSTRAP", "slurm");
  Set("WARREN_SHARED_MEMORY", "off");
  Set("WARREN_REPRODUCIBLE", "false");
  Set("WARREN_ALGORITHM", "allreduce=ring");
  Set("WARREN_PRINT_CHOICE", "1");
  Set("WARREN_CONNECT_TIMEOUT", "7");
  const Settings settings = Read();
  EXPECT_EQ(settings.tracker_host, "10.0.0.1");
  EXPECT_EQ(settings.tracker_port, 9091);
  EXPECT_EQ(settings.task_id, "12");
  EXPECT_EQ(settings.num_attempt, 2);
  EXPECT_EQ(settings.connect_retry, 9);
  EXPECT_EQ(settings.engine, EngineKind::kMpi);
  EXPECT_EQ(settings.bootstrap, BootstrapKind::kSlurm);
  EXPECT_EQ(settings.shared_memory, SharedMemory::kOff);
  EXPECT_FALSE(settings.reproducible);
  EXPECT_EQ(settings.algorithm, "allreduce=ring");
  EXPECT_TRUE(settings.print_choice);
  EXPECT_EQ(settings.connect_timeout.count(), 7);
}

TEST_F(ReadingSettings, ArgumentsWinOverTheEnvironmentAndTheLastOneCounts) {
  Set("DMLC_TRACKER_URI", "10.0.0.1");
  Set("DMLC_TASK_ID", "12");
  const Settings settings = Read({"rabit_tracker_uri=first", "rabit_tracker_uri=second", "rabit_task_id=x"});
  EXPECT_EQ(settings.tracker_host, "second");
  EXPECT_EQ(settings.task_id, "x");
}

TEST_F(ReadingSettings, ArgumentsMayHaveTheVariablesNamesInAnyCase) {
  const Settings settings = Read({"DMLC_TRACKER_URI=here", "dmlc_tracker_port=5", "DMLC_TASK_ID=3"});
  EXPECT_EQ(settings.tracker_host, "here");
  EXPECT_EQ(settings.tracker_port, 5);
  EXPECT_EQ(settings.task_id, "3");
}

TEST_F(ReadingSettings, WhatAProgramPassesForItselfIsLeftAlone) {
  const Settings settings = Read({"program", "max_depth=nonsense", "--eta", "data=a=b", "=",
                                  "rabit_unknown=1", "rabit_reduce_ring_mincount=x", "rabit_world_size=3"});
  EXPECT_EQ(settings.world_size, 3);
}

TEST_F(ReadingSettings, SizesHaveUnits) {
  const std::map<std::string, std::size_t> sizes{{"1", 1},
                                                 {"4096", 4096},
                                                 {"64KB", 64 << 10},
                                                 {"256MB", 256 << 20},
                                                 {"3gb", std::size_t{3} << 30},
                                                 {"2M", 2 << 20},
                                                 {"12B", 12}};
  for (const auto& [text, bytes] : sizes) {
    EXPECT_EQ(Read({"rabit_reduce_buffer=" + text}).reduce_buffer_bytes, bytes) << text;
  }
  for (const char* text :
       {"", "MB", "0", "-1", "1.5GB", "1TB", "99999999999999999999", "18446744073709551615GB", "1 MB"}) {
    EXPECT_THAT(ErrorOf({std::string("rabit_reduce_buffer=") + text}), HasSubstr("256MB")) << text;
  }
}

TEST_F(ReadingSettings, TheTrackerNamedNullIsNone) {
  Set("DMLC_TRACKER_URI", "NULL");
  EXPECT_EQ(Read().tracker_host, "");
  EXPECT_EQ(Read({"rabit_tracker_uri=there"}).tracker_host, "there");
  Set("DMLC_TRACKER_URI", "there");
  EXPECT_EQ(Read({"rabit_tracker_uri=NULL"}).tracker_host, "");
}

TEST_F(ReadingSettings, ATimeoutCountsOnlyWhereItIsSwitchedOn) {
  EXPECT_EQ(Read({"rabit_timeout_sec=60"}).collective_timeout.count(), 0);
  EXPECT_EQ(Read({"rabit_timeout_sec=60", "rabit_timeout=1"}).collective_timeout.count(), 60);
  EXPECT_EQ(Read({"rabit_timeout=true"}).collective_timeout.count(), 1800);
}

TEST_F(ReadingSettings, TheTaskIdComesFromTheLauncherWhereNobodyElseGaveOne) {
  Set("SGE_TASK_ID", "undefined");
  EXPECT_EQ(Read().task_id, "NULL");
  Set("SGE_TASK_ID", "3");
  EXPECT_EQ(Read().task_id, "2");
  Set("SLURM_PROCID", "5");
  Set("SLURM_STEP_NUM_TASKS", "9");
  EXPECT_EQ(Read().task_id, "5");
  Set("PMI_RANK", "6");
  Set("PMI_SIZE", "9");
  EXPECT_EQ(Read().task_id, "6");
  Set("OMPI_COMM_WORLD_RANK", "7");
  Set("OMPI_COMM_WORLD_SIZE", "9");
  EXPECT_EQ(Read().task_id, "7");
  EXPECT_EQ(Read({"rabit_task_id=8"}).task_id, "8");
  Set("DMLC_TASK_ID", "9");
  EXPECT_EQ(Read().task_id, "9");
}

TEST_F(ReadingSettings, TheTaskIdDoesNotComeFromALauncherOfOneProcessWhoseVariablesAllWorkersInherit) {
  Set("SLURM_PROCID", "0");  // a batch script is in no step
  EXPECT_EQ(Read().task_id, "NULL");
  Set("SLURM_STEP_NUM_TASKS", "1");
  Set("PMI_RANK", "0");
  Set("PMI_SIZE", "1");
  Set("OMPI_COMM_WORLD_RANK", "0");
  Set("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_EQ(Read().task_id, "NULL");
}

TEST_F(ReadingSettings, AnErrorNamesKeyValueOriginAndWhatWasExpected) {
  EXPECT_EQ(
      ErrorOf({"rabit_tracker_port=many"}),
      "rabit_tracker_port in the arguments: \"many\" is not understood, expected a port from 1 to 65535");
  Set("WARREN_ENGINE", "gloo");
  EXPECT_EQ(ErrorOf({}),
            "WARREN_ENGINE in the environment: \"gloo\" is not understood, expected native or mpi");
}

/// A former name of a setting, a value that is not the default, and a check for that value.
struct FormerName {
  std::string name;
  std::string value;
  bool (*is_taken)(const Settings& settings);
};
const FormerName kFormerNames[] = {
    {"RABIT_TLS", "1", [](const Settings& s) { return s.tls; }},
    {"RABIT_ENGINE", "mpi", [](const Settings& s) { return s.engine == EngineKind::kMpi; }},
    {"RABIT_BOOTSTRAP", "slurm", [](const Settings& s) { return s.bootstrap == BootstrapKind::kSlurm; }},
    {"RABIT_SHARED_MEMORY", "off", [](const Settings& s) { return s.shared_memory == SharedMemory::kOff; }},
    {"RABIT_HOST_GROUP", "a", [](const Settings& s) { return s.host_group == "a"; }},
    {"RABIT_REPRODUCIBLE", "0", [](const Settings& s) { return !s.reproducible; }},
    {"RABIT_ALGORITHM", "ring",
     [](const Settings& s) { return s.algorithm == "ring" && s.algorithm_name == "RABIT_ALGORITHM"; }},
    {"RABIT_PRINT_CHOICE", "1", [](const Settings& s) { return s.print_choice; }},
    {"RABIT_CONNECT_TIMEOUT", "7", [](const Settings& s) { return s.connect_timeout.count() == 7; }},
    {"RABIT_HOST_TIMEOUT", "7", [](const Settings& s) { return s.host_timeout.count() == 7; }},
};

TEST_F(ReadingSettings, FormerNamesAreReadAsBefore) {
  for (const FormerName& former : kFormerNames) {
    EXPECT_FALSE(former.is_taken(Read())) << former.name;
    EXPECT_TRUE(former.is_taken(Read({former.name + "=" + former.value}))) << former.name;
    Set(former.name.c_str(), former.value.c_str());
    EXPECT_TRUE(former.is_taken(Read())) << former.name;
    unsetenv(former.name.c_str());
  }
}

TEST_F(ReadingSettings, AnErrorNamesTheNameThatTheUserHasSet) {
  EXPECT_THAT(ErrorOf({"rabit_engine=gloo"}), HasSubstr("rabit_engine in the arguments: \"gloo\""));
  Set("RABIT_ENGINE", "gloo");
  EXPECT_THAT(ErrorOf({}), HasSubstr("RABIT_ENGINE in the environment: \"gloo\""));
}

TEST_F(ReadingSettings, OfTwoNamesTheNewOneIsTakenAndThatIsSaidOnce) {
  Set("RABIT_HOST_GROUP", "old");
  Set("WARREN_HOST_GROUP", "new");
  testing::internal::CaptureStderr();
  EXPECT_EQ(Read().host_group, "new");
  EXPECT_EQ(Read().host_group, "new");
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "rabit: WARREN_HOST_GROUP and its old name RABIT_HOST_GROUP are set to different values; using WARREN_HOST_GROUP\n");
}

TEST_F(ReadingSettings, ValuesOutOfRangeAreErrors) {
  for (const char* argument :
       {"rabit_tracker_port=0",        "rabit_tracker_port=65536", "rabit_tracker_port=80 ",
        "rabit_world_size=0",          "rabit_world_size=131073",  "rabit_world_size=-2",
        "rabit_timeout=yes",           "rabit_timeout_sec=-1",     "rabit_timeout_sec=99999999999",
        "WARREN_CONNECT_TIMEOUT=0",    "DMLC_ROLE=king",           "rabit_global_replica=-1",
        "DMLC_WORKER_CONNECT_RETRY=x", "WARREN_BOOTSTRAP=",        "rabit_debug=2",
        "WARREN_REPORT_SECONDS=nan",   "WARREN_REPORT_SECONDS=-1", "WARREN_REPORT_SECONDS=inf",
        "WARREN_REPORT_SECONDS=86401", "WARREN_REPORT_SECONDS=1s"}) {
    EXPECT_THAT(ErrorOf({argument}), HasSubstr("is not understood")) << argument;
  }
  EXPECT_THAT(ErrorOf({"rabit_task_id=" + std::string(1025, 'x')}), HasSubstr("1024 bytes"));
}

TEST_F(ReadingSettings, EveryMockIsKept) {
  EXPECT_THAT(Read({"mock=0,1,2,3", "mock=1,1,1,0"}).mock, ElementsAre("0,1,2,3", "1,1,1,0"));
}

TEST_F(ReadingSettings, AVariableSetToNothingIsNotSet) {
  Set("DMLC_TRACKER_PORT", "");
  EXPECT_EQ(Read().tracker_port, 9000);
}

}  // namespace
}  // namespace warren
