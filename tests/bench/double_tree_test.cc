// The double tree, with which bench/loggp compares the engine's algorithms, computes an allreduce.
#include "bench/simulation/double_tree.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/rabit_engine/collective/memory_world.h"

namespace warren::simulation {
namespace {

TEST(DoubleTree, SumsUpWithAnyNumberOfRanks) {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for (const std::size_t count : {1, 2, 1000}) {
      std::vector<int> members(ranks);
      std::iota(members.begin(), members.end(), 0);
      testing::MemoryWorld world(ranks);
      world.Run([&](Transport& transport) {
        CallTag tag;
        tag.collective = Collective::kAllreduce;
        tag.count = count;
        tag.element_bytes = sizeof(std::int32_t);
        PeerGroup group(transport, members, transport.rank(), tag, kNoDeadline);
        std::vector<std::int32_t> values(count);
        std::iota(values.begin(), values.end(), transport.rank());
        AllreduceDoubleTree(group, values.data(), count, Reduction::Typed(DataType::kInt, ReduceOp::kSum),
                            256);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(values[i], static_cast<int>(i) * ranks + ranks * (ranks - 1) / 2) << ranks << ", " << i;
        }
      });
    }
  }
}

}  // namespace
}  // namespace warren::simulation
