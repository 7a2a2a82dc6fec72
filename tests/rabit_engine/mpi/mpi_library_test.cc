// The choice of the MPI and of the bootstrap from the environment, and the reductions that MPI may carry out.
#include "rabit_engine/mpi/mpi_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/engine/join.h"
#include "rabit_engine/mpi/mpi_communicator.h"

namespace warren {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

MpiClues CluesFrom(const std::map<std::string, std::string>& environment) {
  return ReadMpiClues([&environment](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

const std::vector<std::string> kFolders = {"/opt/warren/lib"};

TEST(MpiLibrary, MpirunOfOpenMpiIsKnownByItsWorldSize) {
  // Open MPI sets PMIX_RANK as well.
  const MpiClues clues = CluesFrom({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}});
  EXPECT_EQ(clues.launcher, MpiKind::kOpenMpi);
  EXPECT_EQ(clues.launched_processes, 4);
}

BootstrapKind LauncherOf(std::map<std::string, std::string> environment,
                         std::optional<MpiKind> in_process = std::nullopt) {
  const wire::LookUp look_up = [&environment](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
  MpiClues clues = ReadMpiClues(look_up);
  clues.in_process = in_process;
  return BootstrapOfLauncher(clues, look_up);
}

TEST(Launchers, AreJoinedByTheWayThatTheyOffer) {
  const std::map<std::string, std::string> hydra{{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"PMI_FD", "6"}};
  const std::map<std::string, std::string> srun{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}};
  EXPECT_EQ(LauncherOf({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}, {"SLURM_STEP_ID", "0"}}),
            BootstrapKind::kMpi);
  EXPECT_EQ(LauncherOf(hydra), BootstrapKind::kSlurm);  // joins through hydra's PMI
  EXPECT_EQ(LauncherOf(hydra, MpiKind::kMpich), BootstrapKind::kMpi);
  EXPECT_EQ(LauncherOf({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"PMI_PORT", "n1:7"}}), BootstrapKind::kMpi);
  EXPECT_EQ(LauncherOf(srun), BootstrapKind::kSlurm);
  EXPECT_EQ(LauncherOf(srun, MpiKind::kOpenMpi), BootstrapKind::kMpi);
  EXPECT_EQ(LauncherOf({}), BootstrapKind::kNone);
  EXPECT_EQ(LauncherOf({}, MpiKind::kMpich), BootstrapKind::kNone);
  EXPECT_EQ(LauncherOf({{"OMPI_COMM_WORLD_SIZE", "1"}}), BootstrapKind::kNone);
  // A script started by sbatch is in no step.
  EXPECT_EQ(LauncherOf({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}),
            BootstrapKind::kNone);
}

std::map<std::string, std::string> Torchrun(const std::string& rank, const std::string& size) {
  return {{"RANK", rank}, {"WORLD_SIZE", size}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
}

TEST(Launchers, ThatMeetThroughPyTorchAreRefusedWithWhatWasSeen) {
  try {
    LauncherOf(Torchrun("1", "2"));
    FAIL() << "joined nobody, and did not say so";
  } catch (const Misuse& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("RANK=1, WORLD_SIZE=2"),
                                             testing::HasSubstr("dmlc-submit --num-workers 2"),
                                             testing::HasSubstr("WARREN_BOOTSTRAP=none")));
  }
  // One torchrun per node, each as a task of srun: the processes belong to torchrun.
  std::map<std::string, std::string> in_step = Torchrun("3", "8");
  in_step.insert({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  EXPECT_THROW(LauncherOf(in_step), Misuse);
}

TEST(Launchers, AreNotSeenInVariablesThatOtherProgramsSet) {
  EXPECT_EQ(LauncherOf({{"WORLD_SIZE", "4"}}), BootstrapKind::kNone);
  EXPECT_EQ(LauncherOf({{"RANK", "0"}, {"WORLD_SIZE", "4"}}), BootstrapKind::kNone);
  EXPECT_EQ(LauncherOf(Torchrun("0", "1")), BootstrapKind::kNone);
  EXPECT_EQ(LauncherOf(Torchrun("0", "many")), BootstrapKind::kNone);
  // In newer versions of Slurm, salloc's shell is a step of one task.
  EXPECT_EQ(
      LauncherOf({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}}),
      BootstrapKind::kNone);
}

TEST(Launchers, MayBeGivenTorchsVariablesToo) {
  std::map<std::string, std::string> step = Torchrun("0", "5");
  step.insert({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}});
  EXPECT_EQ(LauncherOf(step), BootstrapKind::kSlurm);
}

TEST(Launchers, AreLeftAloneWhereDmlcSubmitStartedServersOrSeparatePrograms) {
  std::map<std::string, std::string> without_tracker = Torchrun("0", "2");
  without_tracker.emplace("DMLC_JOB_CLUSTER", "local");
  EXPECT_EQ(LauncherOf(without_tracker), BootstrapKind::kNone);
  EXPECT_EQ(LauncherOf({{"OMPI_COMM_WORLD_SIZE", "4"}, {"DMLC_PS_ROOT_URI", "n1"}}), BootstrapKind::kNone);
}

TEST(MpiLibrary, HydraAndSrunWithPmi2AreKnownByPmiRank) {
  const MpiClues clues = CluesFrom({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"PMI_FD", "6"}});
  EXPECT_EQ(clues.launcher, MpiKind::kMpich);
  EXPECT_EQ(clues.launched_processes, 3);
}

TEST(MpiLibrary, SrunWithPmixMeansOpenMpi) {
  const MpiClues clues =
      CluesFrom({{"PMIX_RANK", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}});
  EXPECT_EQ(clues.launcher, MpiKind::kOpenMpi);
  EXPECT_EQ(clues.launched_processes, 5);
}

TEST(MpiLibrary, PlainSrunNamesNoMpiButStillPromisesProcesses) {
  const MpiClues clues = CluesFrom({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}});
  EXPECT_EQ(clues.launcher, std::nullopt);
  EXPECT_EQ(clues.launched_processes, 5);
}

TEST(MpiLibrary, AnEmptyEnvironmentPromisesNothing) {
  const MpiClues clues = CluesFrom({});
  EXPECT_EQ(clues.launcher, std::nullopt);
  EXPECT_EQ(clues.launched_processes, 1);
  EXPECT_EQ(CluesFrom({{"OMPI_COMM_WORLD_SIZE", "nonsense"}}).launched_processes, 1);
}

TEST(MpiLibrary, TheLibraryThatTheUserNamesIsTheOnlyOneTried) {
  MpiClues clues = CluesFrom({{"WARREN_MPI_LIBRARY", "/home/me/mine.so"}, {"PMI_RANK", "0"}});
  clues.in_process = MpiKind::kOpenMpi;
  EXPECT_THAT(PluginCandidates(clues, kFolders), ElementsAre("/home/me/mine.so"));
}

TEST(MpiLibrary, TheMpiInTheProcessComesBeforeTheLaunchers) {
  MpiClues clues = CluesFrom({{"PMI_RANK", "0"}});
  clues.in_process = MpiKind::kOpenMpi;
  EXPECT_THAT(PluginCandidates(clues, kFolders),
              ElementsAre("/opt/warren/lib/librabit_mpi_openmpi.so", "librabit_mpi_openmpi.so"));
}

TEST(MpiLibrary, TheLaunchersMpiIsTheOnlyOneTried) {
  EXPECT_THAT(PluginCandidates(CluesFrom({{"PMI_RANK", "0"}}), kFolders),
              ElementsAre("/opt/warren/lib/librabit_mpi_mpich.so", "librabit_mpi_mpich.so"));
}

TEST(MpiLibrary, WithoutALauncherAnyMpiDoes) {
  EXPECT_THAT(PluginCandidates({}, kFolders),
              ElementsAre("/opt/warren/lib/librabit_mpi_openmpi.so", "librabit_mpi_openmpi.so",
                          "/opt/warren/lib/librabit_mpi_mpich.so", "librabit_mpi_mpich.so"));
}

TEST(MpiLibrary, AMissingPluginIsExplained) {
  const MpiClues clues = CluesFrom({{"RABIT_MPI_LIBRARY", "/nowhere/librabit_mpi_mine.so"}});
  try {
    LoadMpi(clues);
    FAIL() << "an error was expected";
  } catch (const EngineError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/nowhere/librabit_mpi_mine.so: cannot open"),
                                    HasSubstr("RABIT_MPI_LIBRARY requires it"), HasSubstr("libopenmpi-dev")));
  }
}

TEST(MpiLibrary, ALibraryThatIsNoPluginIsExplained) {
  MpiClues clues;
  clues.library = "libm.so.6";
  try {
    LoadMpi(clues);
    FAIL() << "an error was expected";
  } catch (const EngineError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("libm.so.6: is not a plugin of this engine (it lacks warren_mpi_plugin)"));
  }
}

TEST(MpiReduction, IntegersAndFloatingPointSumsAreMpis) {
  for (int type = 0; type <= static_cast<int>(DataType::kULongLong); ++type) {
    EXPECT_TRUE(MpiHasSame(Reduction::Typed(static_cast<DataType>(type), ReduceOp::kSum)));
    EXPECT_TRUE(MpiHasSame(Reduction::Typed(static_cast<DataType>(type), ReduceOp::kProduct)));
  }
  EXPECT_TRUE(MpiHasSame(Reduction::Typed(DataType::kLong, ReduceOp::kMax)));
  EXPECT_TRUE(MpiHasSame(Reduction::Typed(DataType::kUInt, ReduceOp::kBitXor)));
}

TEST(MpiReduction, WhatMpiDefinesOtherwiseIsTheEngines) {
  for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
    EXPECT_FALSE(MpiHasSame(Reduction::Typed(type, ReduceOp::kMax)));
    EXPECT_FALSE(MpiHasSame(Reduction::Typed(type, ReduceOp::kMin)));
  }
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    EXPECT_FALSE(MpiHasSame(Reduction::Typed(type, ReduceOp::kSum)));
  }
  EXPECT_FALSE(MpiHasSame(Reduction::Custom([](const void*, void*, std::size_t, void*) {}, nullptr, 4)));
}

}  // namespace
}  // namespace warren
