#include "rabit_engine/reduce/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace warren {
namespace {

using Range = std::pair<int, int>;

// The subtrees, straight from the definition: neighbors are combined in rounds, and a last range without a
// neighbor moves up unchanged.
std::set<Range> NodesByCounting(int world_size) {
  std::vector<Range> round;
  round.reserve(world_size);
  for (int rank = 0; rank < world_size; ++rank) round.emplace_back(rank, rank + 1);
  std::set<Range> nodes(round.begin(), round.end());
  while (round.size() > 1) {
    std::vector<Range> next;
    for (std::size_t i = 0; i < round.size(); i += 2) {
      const bool alone = i + 1 == round.size();
      next.push_back(alone ? round[i] : Range(round[i].first, round[i + 1].second));
    }
    nodes.insert(next.begin(), next.end());
    round = next;
  }
  return nodes;
}

// least[r]: the fewest nodes that cover [begin, r), by dynamic programming over all nodes.
std::vector<int> FewestNodes(const std::set<Range>& nodes, int begin, int world_size) {
  std::vector<int> least(world_size + 1, 1'000'000);
  least[begin] = 0;
  for (int rank = begin; rank <= world_size; ++rank) {
    for (const auto& [from, to] : nodes) {
      if (from == rank) least[to] = std::min(least[to], least[rank] + 1);
    }
  }
  return least;
}

TEST(Order, ARangeIsASubtreeExactlyWhenCountingMakesIt) {
  for (int world_size = 1; world_size <= 40; ++world_size) {
    const auto nodes = NodesByCounting(world_size);
    for (int begin = -1; begin <= world_size + 1; ++begin) {
      for (int end = -1; end <= world_size + 2; ++end) {
        EXPECT_EQ(IsSubtree(begin, end, world_size), nodes.contains({begin, end}))
            << "[" << begin << ", " << end << ") of " << world_size;
      }
    }
  }
}

TEST(Order, ARangeDecomposesIntoTheFewestSubtreesFromLeftToRight) {
  for (int world_size = 1; world_size <= 40; ++world_size) {
    const auto nodes = NodesByCounting(world_size);
    for (int begin = 0; begin < world_size; ++begin) {
      const auto fewest = FewestNodes(nodes, begin, world_size);
      for (int end = begin; end <= world_size; ++end) {
        SCOPED_TRACE(testing::Message() << "[" << begin << ", " << end << ") of " << world_size);
        const auto subtrees = Decompose(begin, end, world_size);
        EXPECT_EQ(static_cast<int>(subtrees.size()), fewest[end]);
        int next = begin;
        for (const Subtree& subtree : subtrees) {
          EXPECT_EQ(subtree.begin, next);
          EXPECT_TRUE(nodes.contains({subtree.begin, subtree.end}));
          next = subtree.end;
        }
        EXPECT_EQ(next, end);
      }
    }
  }
}

TEST(Order, TheWholeWorldIsOneSubtreeHoweverLarge) {
  const int largest = std::numeric_limits<int>::max();
  EXPECT_THAT(Decompose(0, largest, largest), testing::ElementsAre(Subtree{0, largest}));
  EXPECT_TRUE(IsSubtree(1 << 30, largest, largest));
  EXPECT_FALSE(IsSubtree(1, largest, largest));
  EXPECT_LE(Decompose(1, largest - 1, largest).size(), 60u);
}

}  // namespace
}  // namespace warren
