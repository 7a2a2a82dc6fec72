// The choice of cores for processes on simulated machines, and reading the cores of a host.
#include "submit/process/binding.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "submit/cluster/scripts/texts.h"
#include "submit/process/capture.h"
#include "submit/process/command.h"
#include "tests/temporary_folder.h"

namespace warren::submit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A machine with Linux's usual numbering: first one hardware thread of every physical core, node by node,
/// then the other threads.
HostCores Machine(int nodes, int cores_of_node, int threads_of_core) {
  HostCores host;
  const int physical = nodes * cores_of_node;
  host.numa_nodes.resize(nodes);
  for (int core = 0; core < physical; ++core) {
    CoreList threads;
    for (int thread = 0; thread < threads_of_core; ++thread) {
      threads.push_back(thread * physical + core);
      host.numa_nodes[core / cores_of_node].push_back(threads.back());
      host.allowed.push_back(threads.back());
    }
    host.physical_cores.push_back(threads);
  }
  for (CoreList& node : host.numa_nodes) std::sort(node.begin(), node.end());
  std::sort(host.allowed.begin(), host.allowed.end());
  return host;
}

std::vector<std::string> Shown(const std::vector<CoreList>& lists) {
  std::vector<std::string> shown;
  for (const CoreList& list : lists) shown.push_back(ShowCoreList(list));
  return shown;
}

std::vector<std::string> Cores(const HostCores& host, const HostProcesses& processes) {
  return Shown(BindProcesses(Bind::kCore, host, processes).workers);
}

std::vector<std::string> Nodes(const HostCores& host, const HostProcesses& processes) {
  return Shown(BindProcesses(Bind::kNuma, host, processes).workers);
}

TEST(CoreLists, AreReadAndWrittenAsLinuxWritesThem) {
  EXPECT_THAT(*ParseCoreList("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*ParseCoreList("7"), ElementsAre(7));
  EXPECT_THAT(*ParseCoreList(""), IsEmpty());
  for (const char* wrong : {"a", "1-", "-1", "3-1", "1,,2", "1,", "0-99999999", "1 2"}) {
    EXPECT_FALSE(ParseCoreList(wrong)) << wrong;
  }
  EXPECT_EQ(ShowCoreList({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(NamedCores({3}), "core 3");
  EXPECT_EQ(NamedCores({3, 4}), "cores 3-4");
}

TEST(BindToCores, EachWorkerHasAsManyAsThreads) {
  EXPECT_THAT(Cores(Machine(1, 8, 1), {.workers = 2, .threads = 4}), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(Cores(Machine(1, 8, 1), {.workers = 2, .threads = 2}), ElementsAre("0-1", "2-3"));
  EXPECT_THAT(Cores(Machine(1, 1, 1), {.workers = 1, .threads = 1}), ElementsAre("0"));
}

TEST(BindToCores, ThreadsOfAPhysicalCoreStayTogether) {
  const HostCores host = Machine(1, 4, 2);  // 0 and 4 are one physical core, 1 and 5 another, ...
  EXPECT_THAT(Cores(host, {.workers = 2, .threads = 4}), ElementsAre("0-1,4-5", "2-3,6-7"));
  EXPECT_THAT(Cores(host, {.workers = 4, .threads = 2}), ElementsAre("0,4", "1,5", "2,6", "3,7"));
  EXPECT_THAT(Cores(host, {.workers = 8, .threads = 1}), ElementsAre("0", "4", "1", "5", "2", "6", "3", "7"));
}

TEST(BindToCores, EachThreadHasAPhysicalCoreWhereThereAreEnough) {
  const HostCores host = Machine(1, 4, 2);
  EXPECT_THAT(Cores(host, {.workers = 2, .threads = 2}), ElementsAre("0-1,4-5", "2-3,6-7"));
  EXPECT_THAT(Cores(host, {.workers = 3, .threads = 1}), ElementsAre("0,4", "1,5", "2,6"));
}

TEST(BindToCores, PhysicalCoresAreSharedOnlyWhereTheyMustBe) {
  EXPECT_THAT(Cores(Machine(1, 4, 2), {.workers = 2, .threads = 3}), ElementsAre("0-1,4-5", "2-3,6-7"));
  EXPECT_THAT(Cores(Machine(1, 3, 2), {.workers = 2, .threads = 3}), ElementsAre("0-1,3", "2,4-5"));
}

TEST(BindToCores, NoWorkerStretchesOverTwoNodesUnlessItMust) {
  EXPECT_THAT(Cores(Machine(2, 6, 1), {.workers = 2, .threads = 4}), ElementsAre("0-3", "6-9"));
  EXPECT_THAT(Cores(Machine(2, 6, 1), {.workers = 3, .threads = 4}), ElementsAre("0-3", "6-9", "4-5,10-11"));
  EXPECT_THAT(Cores(Machine(2, 4, 1), {.workers = 1, .threads = 8}), ElementsAre("0-7"));
}

TEST(BindToCores, WorkersThatFollowEachOtherAreOnOneNodeAndAllNodesAreUsed) {
  EXPECT_THAT(Cores(Machine(2, 8, 1), {.workers = 4, .threads = 2}),
              ElementsAre("0-1", "2-3", "8-9", "10-11"));
  EXPECT_THAT(Cores(Machine(2, 2, 2), {.workers = 4, .threads = 2}), ElementsAre("0,4", "1,5", "2,6", "3,7"));
}

TEST(BindToCores, OnlyWhatIsAllowedIsGivenAway) {
  HostCores host = Machine(2, 4, 1);
  host.allowed = {1, 3, 4, 6, 7};
  EXPECT_THAT(Cores(host, {.workers = 2, .threads = 2}), ElementsAre("1,3", "4,6"));
  host = Machine(1, 4, 2);
  host.allowed = {1, 4, 5};  // one thread of the first physical core, both threads of the second
  EXPECT_THAT(Cores(host, {.workers = 1, .threads = 3}), ElementsAre("1,4-5"));
}

TEST(BindToCores, ServersHaveOneEach) {
  const Binding binding =
      BindProcesses(Bind::kCore, Machine(1, 8, 1), {.workers = 2, .threads = 3, .servers = 2});
  EXPECT_THAT(Shown(binding.workers), ElementsAre("0-2", "3-5"));
  EXPECT_THAT(Shown(binding.servers), ElementsAre("6", "7"));
}

TEST(BindToCores, NobodyIsBoundWhereThreadsAreMoreThanCores) {
  const Binding binding =
      BindProcesses(Bind::kCore, Machine(1, 4, 1), {.workers = 2, .threads = 2, .servers = 1});
  EXPECT_THAT(binding.workers, IsEmpty());
  EXPECT_THAT(binding.servers, IsEmpty());
  EXPECT_TRUE(binding.too_few);
  EXPECT_EQ(
      NotBoundStory(Bind::kCore, binding, "n1"),
      "--bind core: no process is bound on n1: 2 workers of 2 threads and 1 server are more than the 4 cores that may be used; "
      "fewer workers or fewer threads (--worker-cores) would fit");
  EXPECT_THAT(BindProcesses(Bind::kCore, {}, {.workers = 1}).workers, IsEmpty());
  EXPECT_THAT(BindProcesses(Bind::kCore, Machine(1, 4, 1), {.workers = 4096, .threads = 1'000'000}).workers,
              IsEmpty());
}

TEST(BindToCores, AMachineThatTellsNothingOfItselfIsOneNodeOfCores) {
  EXPECT_THAT(
      Cores({.allowed = {0, 2, 4, 6}, .physical_cores = {}, .numa_nodes = {}}, {.workers = 2, .threads = 2}),
      ElementsAre("0,2", "4,6"));
}

TEST(BindToNodes, WorkersAreDealtOutInBlocks) {
  EXPECT_THAT(Nodes(Machine(2, 4, 1), {.workers = 4, .threads = 2}), ElementsAre("0-3", "0-3", "4-7", "4-7"));
  EXPECT_THAT(Nodes(Machine(2, 2, 2), {.workers = 2, .threads = 4}), ElementsAre("0-1,4-5", "2-3,6-7"));
  EXPECT_THAT(Nodes(Machine(4, 2, 1), {.workers = 2, .threads = 1}), ElementsAre("0-1", "4-5"));
}

TEST(BindToNodes, ANodeWithFewerAllowedCoresTakesFewerWorkers) {
  HostCores host = Machine(2, 6, 1);
  host.allowed = {0, 1, 2, 3, 4, 5, 8, 10};
  EXPECT_THAT(Nodes(host, {.workers = 4, .threads = 2}), ElementsAre("0-5", "0-5", "0-5", "8,10"));
}

TEST(BindToNodes, OneNodeIsNoChoice) {
  const Binding binding = BindProcesses(Bind::kNuma, Machine(1, 4, 2), {.workers = 2, .threads = 4});
  EXPECT_THAT(binding.workers, IsEmpty());
  EXPECT_FALSE(binding.too_few);
  EXPECT_THAT(NotBoundStory(Bind::kNuma, binding), HasSubstr("one NUMA node"));
  HostCores host = Machine(2, 4, 1);
  host.allowed = {4, 5};
  EXPECT_THAT(Nodes(host, {.workers = 2}), IsEmpty());
}

TEST(BindToNodes, NobodyIsBoundWhereANodeWouldGetMoreThreadsThanItHasCores) {
  const Binding one = BindProcesses(Bind::kNuma, Machine(2, 4, 1), {.workers = 1, .threads = 8});
  EXPECT_THAT(one.workers, IsEmpty());
  EXPECT_EQ(one.why_not, "a NUMA node of 4 cores would get 8 threads");
  EXPECT_TRUE(one.too_few);
  EXPECT_THAT(Nodes(Machine(2, 8, 1), {.workers = 3, .threads = 5}), IsEmpty());
}

TEST(BindToNothing, IsWhatNoneDoes) {
  const Binding binding = BindProcesses(Bind::kNone, Machine(2, 4, 1), {.workers = 2});
  EXPECT_THAT(binding.workers, IsEmpty());
  EXPECT_EQ(binding.why_not, "");
}

/// A machine with random nodes, physical cores and core numbers, and with gaps in the allowed cores.
HostCores SomeMachine(std::mt19937& random) {
  const auto below = [&random](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  HostCores host;
  const int count = 1 + below(24);
  std::vector<int> numbers(32);
  for (int i = 0; i < 32; ++i) numbers[i] = i;
  std::shuffle(numbers.begin(), numbers.end(), random);
  const int threads_of_core = 1 + below(3);
  const int nodes = 1 + below(4);
  host.numa_nodes.resize(nodes);
  for (int i = 0; i < count;) {
    CoreList core;
    CoreList& node = host.numa_nodes[below(nodes)];
    for (int thread = 0; thread < threads_of_core && i < count; ++thread, ++i) {
      core.push_back(numbers[i]);
      node.push_back(numbers[i]);
      if (below(5) != 0) host.allowed.push_back(numbers[i]);
    }
    std::sort(core.begin(), core.end());
    host.physical_cores.push_back(core);
  }
  std::sort(host.allowed.begin(), host.allowed.end());
  for (CoreList& node : host.numa_nodes) std::sort(node.begin(), node.end());
  std::erase_if(host.numa_nodes, [](const CoreList& node) { return node.empty(); });
  std::sort(host.numa_nodes.begin(), host.numa_nodes.end());
  std::sort(host.physical_cores.begin(), host.physical_cores.end());
  return host;
}

TEST(BindToCores, OnAnyMachineAllHaveOwnCoresWheneverThereAreAsManyAsThreads) {
  std::mt19937 random(7);
  for (int run = 0; run < 20'000; ++run) {
    const HostCores host = SomeMachine(random);
    const HostProcesses processes{.workers = 1 + static_cast<int>(random() % 6),
                                  .threads = 1 + static_cast<int>(random() % 4),
                                  .servers = static_cast<int>(random() % 3)};
    const Binding binding = BindProcesses(Bind::kCore, host, processes);
    const int threads = processes.workers * processes.threads + processes.servers;
    ASSERT_EQ(binding.workers.empty(), threads > static_cast<int>(host.allowed.size())) << run;
    if (binding.workers.empty()) continue;
    ASSERT_EQ(binding.workers.size(), processes.workers);
    ASSERT_EQ(binding.servers.size(), processes.servers);
    std::set<int> taken;
    const auto take = [&](const std::vector<CoreList>& lists, int least) {
      for (const CoreList& cores : lists) {
        ASSERT_GE(static_cast<int>(cores.size()), least);
        ASSERT_TRUE(std::is_sorted(cores.begin(), cores.end()));
        for (const int core : cores) {
          ASSERT_TRUE(taken.insert(core).second) << "two processes have core " << core;
          ASSERT_TRUE(std::binary_search(host.allowed.begin(), host.allowed.end(), core));
        }
      }
    };
    take(binding.workers, processes.threads);
    take(binding.servers, 1);
  }
}

/// A folder with the files in which Linux describes a machine.
class InventedRoot {
 public:
  /// `offline`: a range of cores that the mask allows, such as "8-15", but that are not there; may be empty.
  explicit InventedRoot(const HostCores& host, const std::string& offline = "") {
    folder_.Write("proc/self/status", "Name:\tcat\nCpus_allowed:\tff\nCpus_allowed_list:\t" +
                                          ShowCoreList(host.allowed) +
                                          (offline.empty() ? "" : "," + offline) + "\nMems_allowed:\t1\n");
    if (!offline.empty()) folder_.Write("sys/devices/system/cpu/online", ShowCoreList(host.allowed) + "\n");
    for (const CoreList& core : host.physical_cores) {
      for (const int thread : core) {
        folder_.Write(
            "sys/devices/system/cpu/cpu" + std::to_string(thread) + "/topology/thread_siblings_list",
            ShowCoreList(core) + "\n");
      }
    }
    // An offline core, which has no topology.
    std::filesystem::create_directories(path() / "sys/devices/system/cpu/cpu99");
    std::filesystem::create_directories(path() / "sys/devices/system/cpu/cpufreq");
    for (std::size_t node = 0; node < host.numa_nodes.size(); ++node) {
      folder_.Write("sys/devices/system/node/node" + std::to_string(node) + "/cpulist",
                    ShowCoreList(host.numa_nodes[node]) + "\n");
    }
    folder_.Write("sys/devices/system/node/node9/cpulist", "\n");  // a node with memory only
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  const TemporaryFolder folder_;
};

TEST(HostCores, AreWhatLinuxSaysAndTheScriptOfOtherHostsSaysTheSame) {
  std::mt19937 random(11);
  for (int run = 0; run < 30; ++run) {
    const HostCores host = SomeMachine(random);
    if (host.allowed.empty()) continue;
    const InventedRoot root(host, run % 2 == 0 ? "200-207" : "");
    EXPECT_EQ(ReadHostCores(root.path()), host);
    const std::string script = std::string(kCommonScript) + "echo $(host_cores \"$1\")";
    const std::string said = Capture({"sh", "-c", script, "sh", root.path()}, SearchPath()).out;
    EXPECT_EQ(ParseHostCores(said), host) << said;
  }
}

TEST(HostCores, OfThisMachineAreThoseOfTheAffinityMask) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const HostCores host = ReadHostCores();
  EXPECT_EQ(static_cast<int>(host.allowed.size()), CPU_COUNT(&mask));
  for (const int core : host.allowed) EXPECT_TRUE(CPU_ISSET(core, &mask)) << core;
}

TEST(HostCores, OfASystemWithoutAnyFilesAreNone) {
  EXPECT_EQ(ReadHostCores("/nonesuch"), HostCores());
  for (const char* wrong : {"", "0-3", "0-3 /", "/ / /", "0-3 / /", "0-3 / x / 0 /", "0-3 / / / 0 1"})
    EXPECT_FALSE(ParseHostCores(wrong)) << wrong;
  EXPECT_EQ(ParseHostCores("0-3 / / /"), (HostCores{{0, 1, 2, 3}, {}, {}}));
}

}  // namespace
}  // namespace warren::submit
