// The choice of the MPI and of the bootstrap from the environment, and the reductions that MPI may carry out.
#include "rabit_engine/mpi/mpi_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/engine/join.h"
#include "rabit_engine/mpi/mpi_communicator.h"
#include "tests/environment.h"

namespace warren {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

MpiClues CluesFrom(const Environment& environment) {
  return ReadMpiClues(LookUpIn(environment));
}

const std::vector<std::string> kFolders = {"/opt/warren/lib"};

BootstrapKind LauncherOf(const Environment& environment, std::optional<MpiKind> in_process = std::nullopt) {
  MpiClues clues = CluesFrom(environment);
  clues.in_process = in_process;
  return BootstrapOfLauncher(clues, LookUpIn(environment));
}

TEST(Launchers, AreJoinedByTheWayThatTheyOffer) {
  const Environment hydra{{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"PMI_FD", "6"}};
  const Environment srun{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}};
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

Environment Torchrun(const std::string& rank, const std::string& size) {
  return {{"RANK", rank}, {"WORLD_SIZE", size}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
}

TEST(Launchers, ThatMeetThroughPyTorchAreRefusedWithWhatWasSeen) {
  EXPECT_THAT(
      [] { LauncherOf(Torchrun("1", "2")); },
      ThrowsMessage<Misuse>(AllOf(HasSubstr("RANK=1, WORLD_SIZE=2"), HasSubstr("dmlc-submit --num-workers 2"),
                                  HasSubstr("WARREN_BOOTSTRAP=none"))));
  // One torchrun per node, each as a task of srun: the processes belong to torchrun.
  Environment in_step = Torchrun("3", "8");
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
  Environment step = Torchrun("0", "5");
  step.insert({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}});
  EXPECT_EQ(LauncherOf(step), BootstrapKind::kSlurm);
}

TEST(Launchers, AreLeftAloneWhereDmlcSubmitStartedServersOrSeparatePrograms) {
  Environment without_tracker = Torchrun("0", "2");
  without_tracker.emplace("DMLC_JOB_CLUSTER", "local");
  EXPECT_EQ(LauncherOf(without_tracker), BootstrapKind::kNone);
  EXPECT_EQ(LauncherOf({{"OMPI_COMM_WORLD_SIZE", "4"}, {"DMLC_PS_ROOT_URI", "n1"}}), BootstrapKind::kNone);
}

TEST(MpiLibrary, ALauncherIsKnownByTheVariablesThatItSets) {
  struct Case {
    const char* launcher;
    Environment environment;
    std::optional<MpiKind> kind;
    int processes;
  };
  const Environment step{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}};
  Environment pmix = step;
  pmix.emplace("PMIX_RANK", "0");
  for (const Case& c : {
           Case{"mpirun of Open MPI",
                {{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}},
                MpiKind::kOpenMpi,
                4},
           Case{"hydra, or srun with PMI-2",
                {{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"PMI_FD", "6"}},
                MpiKind::kMpich,
                3},
           Case{"srun with PMIx", pmix, MpiKind::kOpenMpi, 5},
           Case{"plain srun, which names no MPI", step, std::nullopt, 5},
           Case{"none", {}, std::nullopt, 1},
           Case{"nonsense", {{"OMPI_COMM_WORLD_SIZE", "nonsense"}}, MpiKind::kOpenMpi, 1},
       }) {
    const MpiClues clues = CluesFrom(c.environment);
    EXPECT_EQ(clues.launcher, c.kind) << c.launcher;
    EXPECT_EQ(clues.launched_processes, c.processes) << c.launcher;
  }
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
  EXPECT_THAT([&] { LoadMpi(clues); },
              ThrowsMessage<EngineError>(AllOf(HasSubstr("/nowhere/librabit_mpi_mine.so: cannot open"),
                                               HasSubstr("RABIT_MPI_LIBRARY requires it"),
                                               HasSubstr("libopenmpi-dev"))));
}

TEST(MpiLibrary, ALibraryThatIsNoPluginIsExplained) {
  MpiClues clues;
  clues.library = "libm.so.6";
  EXPECT_THAT([&] { LoadMpi(clues); },
              ThrowsMessage<EngineError>(
                  HasSubstr("libm.so.6: is not a plugin of this engine (it lacks warren_mpi_plugin)")));
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
