// Hosts of various sizes, with ranks as threads of this process: each host has its own shared memory, and
// links connect all ranks.
#include "rabit_engine/collective/hierarchical_subtrees.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "checks.h"
#include "rabit_engine/base/layout.h"
#include "rabit_engine/collective/levels.h"
#include "rabit_engine/host/host_collectives.h"
#include "tests/rabit_engine/host/shm_members.h"

namespace warren::testing {
namespace {

/// The number of ranks on each host.
using Layout = std::vector<int>;

std::vector<int> LeadersOf(const Layout& hosts) {
  std::vector<int> leaders;
  for (const int ranks : hosts) {
    leaders.insert(leaders.end(), static_cast<std::size_t>(ranks), static_cast<int>(leaders.size()));
  }
  return leaders;
}

class HostsWorld {
 public:
  explicit HostsWorld(const Layout& hosts) : layout_(LeadersOf(hosts)), links_(layout_.world_size()) {
    for (const int ranks : hosts) memories_.push_back(std::make_unique<Members>(ranks));
  }

  /// Runs these allreduces, in order, on all ranks.
  void Run(const std::vector<ReductionCase>& tests) {
    links_.Run([&](Transport& transport) {
      const int rank = transport.rank();
      Members& memory = *memories_[layout_.host_of(rank)];
      HostCollectives host(memory[layout_.local_index(rank)]);
      const Hosts hosts{memory.size() > 1 ? &host : nullptr, &layout_};
      std::vector<int> members(static_cast<std::size_t>(layout_.world_size()));
      std::iota(members.begin(), members.end(), 0);
      PeerGroup group(transport, members, rank, hosts);
      CallTag tag;
      tag.collective = Collective::kAllreduce;
      const auto begin = [&](std::size_t element_bytes) {
        ++tag.sequence;
        tag.element_bytes = static_cast<std::uint32_t>(element_bytes);
        group.Begin(tag, Clock::now() + std::chrono::seconds(60));
      };
      for (const ReductionCase& test : tests) {
        GuardedBuffer buffer(test.inputs[rank], test.misalignment);
        begin(test.element_bytes());
        collective::AllreduceHierarchicalSubtrees(group, buffer.data(), test.count, test.sample.reduction);
        const std::string what =
            "rank " + std::to_string(rank) + ", " + std::to_string(test.count) + " x " + test.sample.name;
        EXPECT_TRUE(buffer.All() == test.expected) << what;
        EXPECT_TRUE(buffer.GuardsHold()) << what;
      }
      if (memory.size() > 1) host.Barrier(tag);  // no rank leaves while another is in a call
    });
  }

  const HostLayout& layout() const { return layout_; }
  const MemoryWorld& links() const { return links_; }

 private:
  const HostLayout layout_;
  MemoryWorld links_;
  std::vector<std::unique_ptr<Members>> memories_;
};

std::string NameOfLayout(const Layout& hosts) {
  std::string name;
  for (const int ranks : hosts) name += (name.empty() ? "" : "And") + std::to_string(ranks);
  return name;
}

// If a vector has at least kSliceCount floats and all hosts have the same number of ranks, every rank sends a
// slice, in chunks of kChunkCount floats.
constexpr std::size_t kSliceCount = (std::size_t{64} << 10) / sizeof(float);
constexpr std::size_t kChunkCount = (std::size_t{512} << 10) / sizeof(float);

class HierarchicalSubtrees : public ::testing::TestWithParam<Layout> {};

TEST_P(HierarchicalSubtrees, GivesAllRanksTheBitsOfTheCanonicalOrder) {
  HostsWorld world(GetParam());
  const int size = world.layout().world_size();
  std::vector<ReductionCase> tests;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{17},
                                  std::size_t{1000}, kSliceCount - 1, kSliceCount, kSliceCount + 1}) {
    for (const Sample& sample : Samples()) {
      tests.emplace_back(sample, size, count, sample.reduction.is_custom() ? 0 : count % 2);
    }
  }
  world.Run(tests);
}

TEST_P(HierarchicalSubtrees, CutsLongVectorsIntoChunks) {
  HostsWorld world(GetParam());
  const int size = world.layout().world_size();
  const Sample& floats = Samples()[0];
  const std::size_t ranks = world.layout().hosts_are_equal() ? world.layout().ranks_of(0).size() : 1;
  std::vector<ReductionCase> tests;
  for (const std::size_t count : {kChunkCount * ranks - 1, kChunkCount * ranks, kChunkCount * ranks + 1}) {
    tests.emplace_back(floats, size, count);
  }
  world.Run(tests);
}

INSTANTIATE_TEST_SUITE_P(With, HierarchicalSubtrees,
                         ::testing::Values(Layout{3, 3}, Layout{6, 6}, Layout{3, 3, 3}, Layout{3, 2, 4},
                                           Layout{5, 1}, Layout{1, 5}, Layout{7, 7, 7}, Layout{2, 1, 2, 2, 1},
                                           Layout{1, 1, 4}, Layout{4, 4, 4}, Layout(9, 3)),
                         [](const auto& info) { return NameOfLayout(info.param); });

TEST(HierarchicalSubtreesTraffic, IsAMessageALevelOfEachLeader) {
  for (const int levels : {1, 2, 3}) {
    HostsWorld world(Layout(std::size_t{1} << levels, 3));
    const int size = world.layout().world_size();
    const std::vector<ReductionCase> tests(1, ReductionCase(Samples()[0], size, 2));
    world.Run(tests);
    for (int rank = 0; rank < size; ++rank) {
      const bool leads = world.layout().local_index(rank) == 0;
      EXPECT_EQ(world.links().peers(rank).size(), leads ? levels : 0) << rank;
      const auto tags = static_cast<std::size_t>(leads ? levels : 0) * sizeof(CallTag);
      const auto sums = static_cast<std::size_t>(leads ? 2 * levels : 0) * 2 * sizeof(float);
      EXPECT_LE(world.links().bytes_sent(rank), tags + sums) << "two sums at most in each of " << levels;
    }
  }
}

TEST(HierarchicalSubtreesTraffic, OfLongVectorsIsSharedByAllRanksOfAHost) {
  HostsWorld world(Layout(8, 3));
  const int size = world.layout().world_size();
  const std::vector<ReductionCase> tests(1, ReductionCase(Samples()[0], size, 3 * kSliceCount));
  world.Run(tests);
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_LE(world.links().bytes_sent(rank), 3.0 * kSliceCount * sizeof(float) * 1.01)
        << "a third of the vector, as two sums there and as one back";
  }
}

}  // namespace
}  // namespace warren::testing
