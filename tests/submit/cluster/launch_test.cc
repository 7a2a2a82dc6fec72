// The command lines, files and environments of launchers and queues, and the parsing of their answers,
// without running any of them.
#include "submit/cluster/launch.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "submit/cluster/mpi.h"
#include "submit/cluster/script.h"
#include "submit/cluster/sge.h"
#include "submit/cluster/slurm.h"
#include "submit/cluster/yarn.h"

namespace warren::submit {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

struct SomeGang {
  Options options;
  GangPlan plan;

  SomeGang() {
    plan.options = &options;
    plan.count = 3;
    plan.job_name = "job";
    plan.script = [](const ScriptSetting& setting) { return "run as " + setting.rank + "\n"; };
  }
};

/// The word after `option`; "(none)" if there is no such word.
std::string After(const std::vector<std::string>& words, const std::string& option) {
  const auto found = std::find(words.begin(), words.end(), option);
  return found == words.end() || found + 1 == words.end() ? "(none)" : *(found + 1);
}

TEST(Mpi, IsRecognisedByWhatItsVersionSays) {
  EXPECT_EQ(RecogniseMpi("m", "mpirun (Open MPI) 4.1.4\n\nReport bugs"), MpiKind::kOpenMpi4);
  EXPECT_EQ(RecogniseMpi("m", "mpirun.openmpi (OpenRTE) 4.1.4\n"), MpiKind::kOpenMpi4);
  EXPECT_EQ(RecogniseMpi("m", "mpirun (Open MPI) 5.0.11\n"), MpiKind::kOpenMpi5);
  EXPECT_EQ(RecogniseMpi("m", "prterun (PRRTE) 3.0.12\n"), MpiKind::kOpenMpi5);
  EXPECT_EQ(RecogniseMpi("m", "HYDRA build details:\n    Version: 4.0.2\n"), MpiKind::kHydra);
  EXPECT_EQ(RecogniseMpi("m", "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build"),
            MpiKind::kIntel);
  EXPECT_THROW(RecogniseMpi("m", "slurm 22.05"), std::runtime_error);
}

TEST(Mpi, EachImplementationGetsHostsAndEnvironmentByItsOwnMeans) {
  SomeGang gang;
  gang.options.mpirun_args = {"-x", "A=b c"};
  const std::vector<Host> hosts = {{"n0", "alice", 0, 4}, {"n1", "", 0, 1}};
  const Launch open = MpiLaunch({"mpirun", MpiKind::kOpenMpi4, hosts}, gang.plan);
  EXPECT_EQ(After(open.words, "--hostfile"), "FILE:hosts");
  EXPECT_EQ(open.files.at(0).second, "alice@n0 slots=4\nn1 slots=1\n");
  EXPECT_EQ(After(open.words, "-x"), "DMLC_SUBMIT_SCRIPT_0");
  EXPECT_EQ(After(open.words, "orte_local_tmpdir_base"), "FILE:");
  EXPECT_THAT(open.words, IsSupersetOf({"-n", "3", "A=b c"}));
  const Launch hydra = MpiLaunch({"mpiexec", MpiKind::kHydra, hosts}, gang.plan);
  EXPECT_EQ(After(hydra.words, "-machinefile"), "FILE:hosts");
  EXPECT_EQ(hydra.files.at(0).second, "alice@n0:4\nn1:1\n");
  EXPECT_THAT(After(hydra.words, "-genvlist"), HasSubstr("DMLC_SUBMIT_SCRIPT_0"));
  EXPECT_EQ(hydra.environment.back().first, "PATH");  // Hydra loses the last variable
  EXPECT_THROW(MpiLaunch({"mpiexec", MpiKind::kIntel, {{"n0", "", 2222, 1}}}, gang.plan), std::runtime_error);
  EXPECT_THAT(MpiLaunch({"mpirun", MpiKind::kOpenMpi5, {{"n0", "", 2222, 1}}}, gang.plan).files.at(0).second,
              HasSubstr("n0 slots=1 port=2222"));
}

TEST(Mpi, AHostFileOfMpichOrIntelHasNoIpv6Addresses) {
  SomeGang gang;
  const std::vector<Host> hosts = {{"fd00::1", "", 0, 2}};
  EXPECT_EQ(MpiLaunch({"mpirun", MpiKind::kOpenMpi4, hosts}, gang.plan).files.at(0).second,
            "fd00::1 slots=2\n");
  for (const MpiKind kind : {MpiKind::kHydra, MpiKind::kIntel}) {
    EXPECT_THAT(
        [&] {
          MpiLaunch({"mpiexec", kind, hosts}, gang.plan);
        },
        testing::ThrowsMessage<std::runtime_error>(HasSubstr("write the name of fd00::1 instead")));
  }
}

TEST(Mpi, OpenMpisWordsAboutAProcessGroupSayNothingAboutTheJob) {
  SomeGang gang;
  const Launch open = MpiLaunch({"mpirun", MpiKind::kOpenMpi4, {}}, gang.plan);
  ASSERT_NE(open.is_noise, nullptr);
  const std::string warning = "setpgid(14354,14354) failed in parent with errno=Permission denied(13)\n";
  EXPECT_TRUE(open.is_noise("[host-middle:14349] plm:rsh: Warning: " + warning));
  EXPECT_TRUE(open.is_noise("[host-middle:14349] plm:ssh: Warning: " + warning));
  EXPECT_FALSE(open.is_noise(
      "[host:1] plm:rsh: Error: setpgid(0,0) failed in child with errno=Permission denied(13)\n"));
  EXPECT_FALSE(open.is_noise("Warning: " + warning));
  EXPECT_FALSE(open.is_noise("ssh: connect to host n1 port 22: Connection refused\n"));
  EXPECT_EQ(MpiLaunch({"mpirun", MpiKind::kHydra, {}}, gang.plan).is_noise, nullptr);
}

TEST(Mpi, EachImplementationBindsWorkersByItsOwnMeans) {
  SomeGang gang;
  gang.options.worker_cores = 4;
  const auto words = [&](MpiKind kind, Bind bind) {
    gang.options.bind = bind;
    return MpiLaunch({"mpirun", kind, {}}, gang.plan).words;
  };
  const auto variable = [&](Bind bind, const std::string& name) -> std::string {
    gang.options.bind = bind;
    for (const auto& [key, value] : MpiLaunch({"mpirun", MpiKind::kIntel, {}}, gang.plan).environment) {
      if (key == name) return value;
    }
    return "(none)";
  };
  for (const MpiKind open : {MpiKind::kOpenMpi4, MpiKind::kOpenMpi5}) {
    EXPECT_EQ(After(words(open, Bind::kCore), "--bind-to"), "core");
    EXPECT_EQ(After(words(open, Bind::kCore), "--map-by"), "slot:PE=4");
    EXPECT_EQ(After(words(open, Bind::kNuma), "--bind-to"), "numa");
    EXPECT_THAT(words(open, Bind::kNuma), Not(Contains("--map-by")));
    EXPECT_EQ(After(words(open, Bind::kNone), "--bind-to"), "none");
  }
  EXPECT_EQ(After(words(MpiKind::kHydra, Bind::kCore), "-bind-to"), "core:4");
  EXPECT_EQ(After(words(MpiKind::kHydra, Bind::kNuma), "-bind-to"), "numa");
  EXPECT_EQ(variable(Bind::kCore, "I_MPI_PIN"), "1");
  EXPECT_EQ(variable(Bind::kCore, "I_MPI_PIN_DOMAIN"), "4:compact");
  EXPECT_EQ(variable(Bind::kNuma, "I_MPI_PIN_DOMAIN"), "numa");
  EXPECT_EQ(variable(Bind::kNone, "I_MPI_PIN"), "0");
  gang.plan.role = tracker::Role::kServer;
  EXPECT_EQ(After(words(MpiKind::kHydra, Bind::kCore), "-bind-to"), "none") << "workers have these cores";
  gang.options.bind.reset();
  EXPECT_THAT(MpiLaunch({"mpirun", MpiKind::kHydra, {}}, gang.plan).words, Not(Contains("-bind-to")));
}

TEST(Mpi, ASessionDirectoryOfOpenMpi4ThatTheUserHasChosenStays) {
  SomeGang gang;
  const MpiSetting setting = {"mpirun", MpiKind::kOpenMpi4, {}};
  EXPECT_TRUE(MpiLaunch(setting, gang.plan).needs_directory);
  EXPECT_FALSE(MpiLaunch({"mpirun", MpiKind::kOpenMpi5, {}}, gang.plan).needs_directory);
  gang.options.mpirun_args = {"-mca", "orte_tmpdir_base", "/scratch"};
  EXPECT_FALSE(MpiLaunch(setting, gang.plan).needs_directory);
  EXPECT_THAT(MpiLaunch(setting, gang.plan).words, Not(Contains("orte_local_tmpdir_base")));
  gang.options.mpirun_args.clear();
  setenv("OMPI_MCA_orte_tmpdir_base", "/scratch", 1);
  EXPECT_FALSE(MpiLaunch(setting, gang.plan).needs_directory);
  unsetenv("OMPI_MCA_orte_tmpdir_base");
}

TEST(Script, IsCutIntoVariablesThatEveryLauncherTakes) {
  const std::string script = std::string(150'000, 'a') + std::string(100'000, 'b');
  const ScriptInEnvironment cut = InEnvironment(script);
  std::string whole;
  for (const auto& [name, value] : cut.variables) {
    EXPECT_LE(value.size(), 100'000U);
    whole += value;
  }
  EXPECT_EQ(cut.variables.size(), 3U);
  EXPECT_EQ(whole, script);
  EXPECT_THAT(cut.command,
              Contains(HasSubstr("$DMLC_SUBMIT_SCRIPT_0$DMLC_SUBMIT_SCRIPT_1$DMLC_SUBMIT_SCRIPT_2")));
}

TEST(Script, ExportsNoNamesThatAShellDoesNotLetItSet) {
  EXPECT_EQ(ExportCommands({{"UID", "7"}, {"A", "b c"}, {"PPID", "1"}, {"no-name", "x"}}),
            "export A='b c'\n");
  PlannedProcess process;
  process.argv = {"run"};
  process.environment = {{"UID", "7"}, {"UIDS", "8"}};
  const std::string script = WatchedScript(process, 0, 0, "mark", "/", {});
  EXPECT_THAT(script, HasSubstr("export UIDS='8'\n"));
  EXPECT_THAT(script, HasSubstr("set -- \"$(command -v env)\" -- 'UID=7' 'run'\n"));
}

TEST(Slurm, InAnAllocationASrunIsStarted) {
  SomeGang gang;
  gang.options.worker_cores = 2;
  gang.options.worker_gpus = 1;
  gang.options.slurm_worker_nodes = 3;
  const Launch launch = SlurmLaunch(gang.plan, true);
  EXPECT_FALSE(launch.queue);
  EXPECT_EQ(launch.words.front(), "srun");
  EXPECT_THAT(launch.words, IsSupersetOf({"--ntasks=3", "--cpus-per-task=2", "--nodes=3", "--gpus-per-task=1",
                                          "--kill-on-bad-exit=0"}));
}

TEST(Slurm, OutsideABatchScriptIsPutIntoTheQueue) {
  SomeGang gang;
  gang.options.queue = "gpu \"1\"";
  gang.options.worker_cores = 4;
  gang.options.worker_memory_bytes = std::uint64_t{1} << 30;
  gang.options.time_limit = "1-0";
  gang.options.slurm_args = {"--account=a"};
  const Launch launch = SlurmLaunch(gang.plan, false);
  EXPECT_EQ(launch.words.front(), "sbatch");
  // Words of the command line, not directives: those would yield to the user's SBATCH_* variables.
  EXPECT_THAT(launch.words, IsSupersetOf({"--parsable", "--job-name=job", "--ntasks=3", "--cpus-per-task=4",
                                          "--partition=gpu \"1\"", "--mem-per-cpu=256M", "--time=1-0",
                                          "--requeue", "--output=/dev/null"}));
  EXPECT_EQ(launch.words.back(), "--account=a") << "the user's own options come last";
  EXPECT_THAT(launch.input, StartsWith("#!/bin/sh\nexport DMLC_SUBMIT_SCRIPT_0='run as $SLURM_PROCID\n'"));
  EXPECT_THAT(launch.input, Not(HasSubstr("#SBATCH")));
}

TEST(Slurm, AJobOfAnotherClusterIsAskedForAndCancelledThere) {
  SomeGang gang;
  const Queue queue = *SlurmLaunch(gang.plan, false).queue;
  EXPECT_EQ(queue.id("12\n"), "12");
  EXPECT_THAT(queue.cancel("12"), ElementsAre("scancel", "12"));
  EXPECT_THAT(queue.ask("12"), ElementsAre("squeue", "-h", "-j", "12", "-t", "all", "-o", "%T|%r"));
  EXPECT_EQ(queue.id("12;east\n"), "12;east");
  EXPECT_THAT(queue.cancel("12;east"), ElementsAre("scancel", "-M", "east", "12"));
  EXPECT_THAT(queue.ask("12;east"),
              ElementsAre("squeue", "-M", "east", "-h", "-j", "12", "-t", "all", "-o", "%T|%r"));
  EXPECT_EQ(queue.id("hello\n"), std::nullopt);
  EXPECT_EQ(queue.id(";east\n"), std::nullopt);
  EXPECT_EQ(ReadSqueue("12;east", "CLUSTER: east\nRUNNING|None\n", 0)->words, "RUNNING");
  EXPECT_EQ(ReadSqueue("12;east", "CLUSTER: east\n", 0)->state, JobState::kOver);
}

TEST(Slurm, SrunBindsWorkersToTheCoresThatSlurmGivesThem) {
  SomeGang gang;
  for (const auto& [bind, word] :
       {std::pair(Bind::kCore, "--cpu-bind=cores"), std::pair(Bind::kNuma, "--cpu-bind=ldoms"),
        std::pair(Bind::kNone, "--cpu-bind=none")}) {
    gang.options.bind = bind;
    gang.plan.role = tracker::Role::kWorker;
    EXPECT_THAT(SlurmLaunch(gang.plan, true).words, Contains(word));
    EXPECT_THAT(SlurmLaunch(gang.plan, false).input, HasSubstr(std::string("\nexec srun ")));
    EXPECT_THAT(SlurmLaunch(gang.plan, false).input, HasSubstr(word));
    gang.plan.role = tracker::Role::kServer;
    EXPECT_THAT(SlurmLaunch(gang.plan, true).words, Not(Contains(word))) << "workers have these cores";
  }
  gang.plan.role = tracker::Role::kWorker;
  gang.options.bind.reset();
  EXPECT_THAT(SlurmLaunch(gang.plan, false).input, Not(HasSubstr("--cpu-bind")))
      << "Slurm's own setting counts";
}

TEST(Slurm, StatesOfAJobAreUnderstood) {
  EXPECT_EQ(ReadSqueue("1", "PENDING|Resources\n", 0)->state, JobState::kPending);
  EXPECT_EQ(ReadSqueue("1", "PENDING|Resources\n", 0)->words, "PENDING (Resources)");
  EXPECT_EQ(ReadSqueue("1", "RUNNING|None\n", 0)->words, "RUNNING");
  EXPECT_EQ(ReadSqueue("1", "FAILED|NonZeroExitCode\n", 0)->state, JobState::kOver);
  EXPECT_EQ(ReadSqueue("1", "COMPLETING|None\n", 0), std::nullopt);
  EXPECT_EQ(ReadSqueue("1", "slurm_load_jobs error: Invalid job id specified\n", 1)->state, JobState::kOver);
  EXPECT_EQ(ReadSqueue("1", "Unable to contact slurm controller\n", 1), std::nullopt);
  EXPECT_EQ(ReadSqueue("1", "", 0)->state, JobState::kOver);
}

TEST(Sge, AnArrayJobIsPutIntoTheQueue) {
  SomeGang gang;
  gang.options.queue = "all.q";
  gang.options.worker_cores = 2;
  gang.options.worker_memory_bytes = std::uint64_t{3} << 29;
  const Launch launch = SgeLaunch(gang.plan);
  EXPECT_EQ(After(launch.words, "-t"), "1-3");
  EXPECT_EQ(After(launch.words, "-q"), "all.q");
  EXPECT_EQ(After(launch.words, "-pe"), "smp");
  EXPECT_EQ(After(launch.words, "-l"), "h_vmem=768M") << "for each of the two slots";
  EXPECT_EQ(After(launch.words, "-o"), "/dev/null");
  EXPECT_EQ(After(launch.words, "-C"), "") << "a line of an argument that begins with #$ is no directive";
  EXPECT_THAT(launch.input, HasSubstr("run as $((SGE_TASK_ID - 1))"));
  EXPECT_TRUE(launch.files.empty());
  EXPECT_EQ(launch.queue->id("a site's greeting\n12.1-3:1\n"), "12");
  EXPECT_EQ(launch.queue->id("7\n"), "7");
  EXPECT_EQ(launch.queue->id("Unable to run job\n"), std::nullopt);
}

TEST(Sge, SecretsStandInAFileOfTheirOwn) {
  SomeGang gang;
  gang.plan.secrets = "export NAME='secret'\n";
  gang.plan.shared_directory = "/shared/job";
  gang.plan.script = [](const ScriptSetting& setting) { return "secrets: " + setting.secrets_file; };
  const Launch launch = SgeLaunch(gang.plan);
  EXPECT_THAT(launch.files, ElementsAre(testing::Pair("environment", "export NAME='secret'\n")));
  EXPECT_EQ(launch.directory, "/shared/job");
  EXPECT_THAT(launch.input, HasSubstr("secrets: /shared/job/environment"));
  EXPECT_THAT(launch.input, testing::Not(HasSubstr("NAME")));
}

TEST(Sge, StatesOfAJobAreUnderstood) {
  const std::string head = "job-ID prior name user state submit/start at queue slots ja-task-ID\n-----\n";
  const auto line = [](const std::string& id, const std::string& state) {
    return "      " + id + " 0.55500 job root " + state + " 11/22/2026 10:00:00 all.q@vm 1 1\n";
  };
  EXPECT_EQ(ReadQstat("5", head + line("5", "qw"), 0)->state, JobState::kPending);
  EXPECT_EQ(ReadQstat("5", head + line("5", "qw") + line("5", "r"), 0)->state, JobState::kRunning);
  EXPECT_EQ(ReadQstat("5", head + line("55", "r"), 0)->state, JobState::kOver);
  EXPECT_EQ(ReadQstat("5", "", 0)->state, JobState::kOver);
  EXPECT_EQ(ReadQstat("5", "error: unable to contact qmaster", 1), std::nullopt);
  EXPECT_TRUE(ReadQstat("5", head + line("5", "Eqw"), 0)->stays);
  EXPECT_THAT(ReadQstat("5", head + line("5", "Eqw"), 0)->words, HasSubstr("error state Eqw"));
}

TEST(Yarn, TheDistributedShellGetsEverythingInItsScript) {
  SomeGang gang;
  gang.options.queue = "prod";
  gang.options.worker_memory_bytes = std::uint64_t{4} << 30;
  gang.options.worker_cores = 2;
  gang.plan.job_name = "my job; rm";
  const Launch launch = YarnLaunch(gang.plan, "/h/ds.jar");
  EXPECT_THAT(std::vector<std::string>(launch.words.begin(), launch.words.begin() + 3),
              ElementsAre("yarn", "jar", "/h/ds.jar"));
  EXPECT_EQ(After(launch.words, "-appname"), "my_job__rm");
  EXPECT_EQ(After(launch.words, "-num_containers"), "3");
  EXPECT_EQ(After(launch.words, "-container_memory"), "4096");
  EXPECT_EQ(After(launch.words, "-container_vcores"), "2");
  EXPECT_EQ(After(launch.words, "-queue"), "prod");
  EXPECT_EQ(After(launch.words, "-timeout"),
            "2147483647");  // by default, the distributed shell ends every job after ten minutes
  EXPECT_EQ(After(launch.words, "-shell_script"), "FILE:worker.sh");
  EXPECT_THAT(launch.files.at(0).second, HasSubstr("run as $((YARN_SHELL_ID - 1))"));
  EXPECT_FALSE(launch.queue->returns);
  EXPECT_EQ(
      launch.queue->id("INFO impl.YarnClientImpl: Submitted application application_1700000000000_0012\n"),
      "application_1700000000000_0012");
  // The line is incomplete.
  EXPECT_EQ(launch.queue->id("Submitted application application_17000"), std::nullopt);
  EXPECT_THAT(launch.queue->cancel("application_1_2"),
              ElementsAre("yarn", "application", "-kill", "application_1_2"));
}

TEST(Yarn, TheJarIsThatOfTheInstallation) {
  const std::string home = testing::TempDir() + "warren-hadoop";
  std::filesystem::create_directories(home + "/share/hadoop/yarn");
  Options options;
  setenv("HADOOP_HOME", home.c_str(), 1);
  EXPECT_THROW(FindDistributedShell(options), std::runtime_error);
  const std::string name = "/share/hadoop/yarn/hadoop-yarn-applications-distributedshell-3.3.6";
  std::ofstream(home + name + "-sources.jar") << "";
  EXPECT_THROW(FindDistributedShell(options), std::runtime_error);
  std::ofstream(home + name + ".jar") << "";
  EXPECT_EQ(FindDistributedShell(options), home + name + ".jar");
  unsetenv("HADOOP_HOME");
  EXPECT_THROW(FindDistributedShell(options), std::runtime_error);
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace warren::submit
