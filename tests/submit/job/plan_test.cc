// The plan: the processes that a job consists of.
#include "submit/job/plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "posix/cpu_quota.h"
#include "submit/cluster/core_choice.h"
#include "tests/temporary_folder.h"

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Options SomeOptions() {
  Options options;
  options.num_workers = 2;
  options.command = {"train", "a b"};
  return options;
}

PlanContext SomeContext() {
  PlanContext context;
  context.address.tracker_host = "127.0.0.1";
  context.address.tracker_port = 9100;
  context.address.num_workers = 2;
  context.command = {"./train", "./train", {}};
  return context;
}

std::string Get(const tracker::Environment& environment, const std::string& name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return "(unset)";
}

/// The value of the variable in the environment of the second process.
std::string Planned(const Options& options, const PlanContext& context, const std::string& name) {
  return Get(Plan(options, context).at(1).environment, name);
}

TEST(Plan, GivesEveryWorkerItsTaskAndTheTracker) {
  const auto plan = Plan(SomeOptions(), SomeContext());
  ASSERT_EQ(plan.size(), 2U);
  for (int i = 0; i < 2; ++i) {
    const PlannedProcess& process = plan[static_cast<std::size_t>(i)];
    EXPECT_EQ(process.role, tracker::Role::kWorker);
    EXPECT_EQ(process.task_id, i);
    EXPECT_EQ(process.file, "./train");
    EXPECT_THAT(process.argv, ElementsAre("./train", "a b"));
    EXPECT_EQ(Get(process.environment, "DMLC_TASK_ID"), std::to_string(i));
    EXPECT_EQ(Get(process.environment, "DMLC_TRACKER_URI"), "127.0.0.1");
    EXPECT_EQ(Get(process.environment, "DMLC_TRACKER_PORT"), "9100");
    EXPECT_EQ(Get(process.environment, "DMLC_ROLE"), "worker");
    EXPECT_EQ(Get(process.environment, "DMLC_NUM_ATTEMPT"), "0");
    EXPECT_EQ(Get(process.environment, "DMLC_JOB_CLUSTER"), "local");
    EXPECT_EQ(process.log_file, "");
  }
}

TEST(Plan, TellsWorkersHowOftenToReportUnlessTheUserDoes) {
  Options options = SomeOptions();
  PlanContext context = SomeContext();
  EXPECT_EQ(Planned(options, context, "WARREN_REPORT_SECONDS"), "(unset)");
  context.report_seconds = 2;
  EXPECT_EQ(Planned(options, context, "WARREN_REPORT_SECONDS"), "2");
  context.inherited.emplace_back("WARREN_REPORT_SECONDS");
  EXPECT_EQ(Planned(options, context, "WARREN_REPORT_SECONDS"), "(unset)");
  context.inherited.clear();
  options.environment.emplace_back("WARREN_REPORT_SECONDS", "0");
  EXPECT_EQ(Planned(options, context, "WARREN_REPORT_SECONDS"), "0");
}

TEST(Plan, PythonKeepsNoOutputBackUnlessTheUserSaysSo) {
  Options options = SomeOptions();
  options.num_servers = 1;
  PlanContext context = SomeContext();
  for (const char* const cluster : {"local", "ssh", "slurm", "mpi", "sge", "yarn", "kubernetes"}) {
    options.cluster = cluster;
    for (const PlannedProcess& process : Plan(options, context)) {
      EXPECT_EQ(Get(process.environment, "PYTHONUNBUFFERED"), "1") << cluster << ProcessName(process.role, 0);
    }
  }
  context.inherited = {"PYTHONUNBUFFERED"};
  EXPECT_EQ(Planned(options, context, "PYTHONUNBUFFERED"), "(unset)");
  context.inherited.clear();
  options.environment.emplace_back("PYTHONUNBUFFERED", "");
  EXPECT_EQ(Planned(options, context, "PYTHONUNBUFFERED"), "");
}

TEST(Plan, GivesEveryWorkerWhatHorovodrunWould) {
  Options options = SomeOptions();
  const PlanContext context = SomeContext();
  const auto environment = Plan(options, context).at(1).environment;
  for (const auto& [name, value] : {std::pair{"RANK", "1"},
                                    {"SIZE", "2"},
                                    {"LOCAL_RANK", "1"},
                                    {"LOCAL_SIZE", "2"},
                                    {"CROSS_RANK", "0"},
                                    {"CROSS_SIZE", "1"}}) {
    EXPECT_EQ(Get(environment, std::string("HOROVOD_") + name), value) << name;
    Options set = options;
    set.environment = {{std::string("HOROVOD_") + name, "7"}};
    EXPECT_THROW(Plan(set, context), UsageError) << name;
  }
  options.cluster = "ssh";
  EXPECT_EQ(Planned(options, context, "HOROVOD_RANK"), "1");
  EXPECT_EQ(Planned(options, context, "HOROVOD_CROSS_RANK"), "(unset)");
}

TEST(Plan, GivesEveryWorkerWhatTorchrunWould) {
  Options options = SomeOptions();
  PlanContext context = SomeContext();
  context.master_port = 29'500;
  tracker::Environment environment = Plan(options, context).at(1).environment;
  EXPECT_EQ(Get(environment, "RANK"), "1");
  EXPECT_EQ(Get(environment, "WORLD_SIZE"), "2");
  EXPECT_EQ(Get(environment, "LOCAL_RANK"), "1");
  EXPECT_EQ(Get(environment, "LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(Get(environment, "MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(Get(environment, "MASTER_PORT"), "29500");

  options.environment = {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "7000"}};
  environment = Plan(options, context).at(1).environment;
  EXPECT_EQ(Get(environment, "MASTER_ADDR"), "node1");
  EXPECT_EQ(Get(environment, "MASTER_PORT"), "7000");

  options.environment = {{"RANK", "7"}};
  EXPECT_THROW(Plan(options, context), UsageError);
  // On clusters other than local, the cluster decides which workers share a host. Servers have no ranks.
  options.environment = {};
  options.cluster = "ssh";
  options.num_servers = 1;
  const auto plan = Plan(options, context);
  EXPECT_EQ(Get(plan.at(1).environment, "RANK"), "(unset)");
  EXPECT_EQ(Get(plan.at(2).environment, "RANK"), "0");
  EXPECT_EQ(Get(plan.at(2).environment, "LOCAL_RANK"), "(unset)");
  EXPECT_EQ(Get(plan.at(2).environment, "MASTER_ADDR"), "(unset)");
  EXPECT_EQ(Get(plan.at(2).environment, "MASTER_PORT"), "29500");
}

TEST(Plan, LocalWorkersShareTheCoresUnlessTheUserSaysOtherwise) {
  Options options = SomeOptions();
  PlanContext context = SomeContext();
  const auto threads = [&] { return Planned(options, context, "OMP_NUM_THREADS"); };
  context.usable_cores = 7;
  EXPECT_EQ(threads(), "3");
  context.usable_cores = 1;
  EXPECT_EQ(threads(), "1");
  options.worker_cores = 5;
  options.worker_cores_were_chosen = true;
  EXPECT_EQ(threads(), "5");
  context.inherited = {"OMP_NUM_THREADS"};
  EXPECT_EQ(threads(), "(unset)");
  context.inherited.clear();
  options.environment = {{"OMP_NUM_THREADS", "2"}};
  EXPECT_EQ(threads(), "2");
}

TEST(Plan, ProcessesKnowTheTraceUnlessTheUserSetsAnother) {
  Options options = SomeOptions();
  options.num_servers = 1;
  PlanContext context = SomeContext();
  context.inherited = {"TRACEPARENT"};
  context.trace = {{"TRACEPARENT", "00-a-b-01"}, {"TRACESTATE", "vendor=1"}};
  for (const PlannedProcess& process : Plan(options, context)) {
    EXPECT_EQ(Get(process.environment, "TRACEPARENT"), "00-a-b-01");
    EXPECT_EQ(Get(process.environment, "TRACESTATE"), "vendor=1");
  }
  options.environment = {{"TRACEPARENT", "mine"}};
  const auto plan = Plan(options, context);
  EXPECT_EQ(Get(plan[0].environment, "TRACEPARENT"), "mine");
  EXPECT_EQ(std::count_if(plan[0].environment.begin(), plan[0].environment.end(),
                          [](const auto& variable) { return variable.first == "TRACEPARENT"; }),
            1);
}

TEST(Plan, ElsewhereTheHostKnowsItsCores) {
  Options options = SomeOptions();
  PlanContext context = SomeContext();
  context.usable_cores = 8;
  for (const char* cluster : {"ssh", "mpi", "slurm", "sge"}) {
    options.cluster = cluster;
    EXPECT_EQ(ThreadsOf(options, {}), Threads::kShare);
    EXPECT_EQ(ThreadsOf(options, {"OMP_NUM_THREADS"}), Threads::kOfUser);
    EXPECT_EQ(Planned(options, context, "OMP_NUM_THREADS"), "(unset)");
  }
  for (const char* cluster : {"yarn", "kubernetes"}) {
    options.cluster = cluster;
    EXPECT_EQ(ThreadsOf(options, {}), Threads::kOfUser);
  }
  options.worker_cores_were_chosen = true;
  EXPECT_EQ(ThreadsOf(options, {}), Threads::kChosen);
}

TEST(Plan, ProcessesOfThisMachineAreBoundAsDecided) {
  Options options = SomeOptions();
  options.num_servers = 1;
  options.bind = Bind::kCore;
  PlanContext context = SomeContext();
  context.usable_cores = 8;
  context.binding = {.workers = {{0, 1, 2}, {3, 4, 5}}, .servers = {{6}}};
  const auto plan = Plan(options, context);
  EXPECT_THAT(plan[0].cores, IsEmpty()) << "the scheduler sleeps";
  EXPECT_THAT(plan[1].cores, ElementsAre(6));
  EXPECT_THAT(plan[2].cores, ElementsAre(0, 1, 2));
  EXPECT_THAT(plan[3].cores, ElementsAre(3, 4, 5));
  EXPECT_EQ(Get(plan[3].environment, "OMP_NUM_THREADS"), "3") << "one of eight is the server's";
  EXPECT_THAT(ShowPlan(plan), HasSubstr("# worker 1, bound to cores 3-5\ntaskset -c 3-5 env "));
}

TEST(Binding, CountsTheThreadsThatWorkersAreToldToUse) {
  Options options = SomeOptions();
  options.bind = Bind::kCore;
  const auto threads = [&](const std::string& inherited) {
    return ProcessesToBind(options, 2, 1, 9, inherited).threads;
  };
  EXPECT_EQ(threads(""), 4);
  EXPECT_EQ(threads("x"), 4);
  options.worker_cores = 3;
  options.worker_cores_were_chosen = true;
  EXPECT_EQ(threads(""), 3);
  EXPECT_EQ(threads("2,4"), 2);
  options.environment = {{"OMP_NUM_THREADS", "5"}};
  EXPECT_EQ(threads("2"), 5);
}

TEST(Cores, AQuotaIsRoundedUp) {
  EXPECT_EQ(posix::CoresOfQuota("150000 100000"), 2);
  EXPECT_EQ(posix::CoresOfQuota("200000 100000"), 2);
  EXPECT_EQ(posix::CoresOfQuota("1000 100000"), 1);
  EXPECT_EQ(posix::CoresOfQuota("max 100000"), std::nullopt);
  EXPECT_EQ(posix::CoresOfQuota(""), std::nullopt);
  EXPECT_GE(posix::UsableCores(), 1);
}

TEST(Cores, TheSmallestQuotaOfTheOwnGroupAndThoseAboveItCounts) {
  const TemporaryFolder folder;
  const std::filesystem::path& root = folder.path();
  EXPECT_EQ(posix::CoresOfQuotas(root), std::nullopt);
  folder.Write("proc/self/cgroup", "1:cpu:/\n0::/system.slice/train.service\n");
  EXPECT_EQ(posix::CoresOfQuotas(root), std::nullopt);
  folder.Write("sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
  folder.Write("sys/fs/cgroup/system.slice/train.service/cpu.max", "250000 100000\n");
  EXPECT_EQ(posix::CoresOfQuotas(root), 3);
  folder.Write("sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_EQ(posix::CoresOfQuotas(root), 3);
  folder.Write("sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n");
  EXPECT_EQ(posix::CoresOfQuotas(root), 2);
}

TEST(Plan, ParameterServerJobHasASchedulerServersAndWorkers) {
  Options options = SomeOptions();
  options.num_servers = 1;
  options.log_dir = "logs";
  PlanContext context = SomeContext();
  context.address = {"", 0, 2, 1, "127.0.0.1", 9200};
  const auto plan = Plan(options, context);
  ASSERT_EQ(plan.size(), 4U);
  EXPECT_EQ(Get(plan[0].environment, "DMLC_ROLE"), "scheduler");
  EXPECT_EQ(Get(plan[1].environment, "DMLC_ROLE"), "server");
  EXPECT_EQ(Get(plan[3].environment, "DMLC_ROLE"), "worker");
  EXPECT_EQ(plan[0].log_file, "logs/scheduler.log");
  EXPECT_EQ(plan[1].log_file, "logs/server-0.log");
  EXPECT_EQ(plan[3].log_file, "logs/worker-1.log");
  for (const PlannedProcess& process : plan) {
    EXPECT_EQ(Get(process.environment, "DMLC_PS_ROOT_URI"), "127.0.0.1");
    EXPECT_EQ(Get(process.environment, "DMLC_PS_ROOT_PORT"), "9200");
    EXPECT_EQ(Get(process.environment, "DMLC_NUM_SERVER"), "1");
    EXPECT_EQ(Get(process.environment, "DMLC_TRACKER_URI"), "(unset)");
  }
}

TEST(Plan, LastValueOfAVariableCountsAndJobVariablesAreNotTheUsers) {
  Options options = SomeOptions();
  options.environment = {{"A", "1"}, {"B", "2"}, {"A", "3"}};
  const auto plan = Plan(options, SomeContext());
  EXPECT_EQ(Get(plan[0].environment, "A"), "3");
  options.environment = {{"DMLC_TASK_ID", "7"}};
  EXPECT_THROW(Plan(options, SomeContext()), UsageError);
}

TEST(Plan, VariablesInheritedFromAnotherJobAreUnset) {
  PlanContext context = SomeContext();
  context.inherited = {"HOME", "DMLC_TRACKER_URI", "DMLC_PS_ROOT_URI", "DMLC_INTERFACE"};
  const auto plan = Plan(SomeOptions(), context);
  EXPECT_THAT(plan[0].unset, ElementsAre("DMLC_PS_ROOT_URI"));
}

TEST(Plan, LaterAttemptDiffersInItsNumberOnly) {
  const auto plan = Plan(SomeOptions(), SomeContext());
  const auto environment = EnvironmentOfAttempt(plan[1], 2);
  EXPECT_EQ(Get(environment, "DMLC_NUM_ATTEMPT"), "2");
  EXPECT_EQ(Get(environment, "DMLC_TASK_ID"), "1");
  EXPECT_EQ(environment.size(), plan[1].environment.size());
}

TEST(ShowPlan, IsAShellCommandForEachProcess) {
  Options options = SomeOptions();
  options.environment = {{"A", "it's"}};
  PlanContext context = SomeContext();
  context.inherited = {"DMLC_PS_ROOT_PORT"};
  const std::string shown = ShowPlan(Plan(options, context));
  EXPECT_THAT(shown, HasSubstr("# worker 1\nenv -u DMLC_PS_ROOT_PORT 'A=it'\\''s' DMLC_NUM_WORKER=2 "));
  EXPECT_THAT(shown, HasSubstr(" ./train 'a b'\n"));
}

TEST(ShowPlan, CommandWithAnEqualsSignIsNotTakenForAVariable) {
  PlanContext context = SomeContext();
  context.command = {"./a=b", "./a=b", {}};
  EXPECT_THAT(ShowPlan(Plan(SomeOptions(), context)), HasSubstr("sh -c 'exec \"$0\" \"$@\"' ./a=b 'a b'"));
}

}  // namespace
}  // namespace warren::submit
