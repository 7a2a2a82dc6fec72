#include "tracker/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace warren::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr int kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 100, 1000, 4097};

TEST(Topology, IsATreeRootedAtRankZeroOfLogarithmicDepth) {
  for (const int size : kSizes) {
    const Topology topology(size);
    EXPECT_EQ(topology.parent(0), -1);
    int deepest = 0;
    for (int rank = 1; rank < size; ++rank) {
      int depth = 0;
      for (int at = rank; at != 0 && depth <= size; at = topology.parent(at)) ++depth;
      deepest = std::max(deepest, depth);
    }
    int log2 = 0;
    while ((2 << log2) <= size) ++log2;
    EXPECT_EQ(deepest, log2) << size;
  }
}

TEST(Topology, NamesTheParentAmongTheTreeNeighborsOnBothEnds) {
  for (const int size : kSizes) {
    const Topology topology(size);
    for (int rank = 0; rank < size; ++rank) {
      const std::vector<int>& tree = topology.tree_neighbors(rank);
      EXPECT_LE(tree.size(), 3U);
      if (rank != 0) {
        EXPECT_EQ(tree.front(), topology.parent(rank));
      }
      for (const int peer : tree) {
        const std::vector<int>& back = topology.tree_neighbors(peer);
        EXPECT_EQ(std::count(back.begin(), back.end(), rank), 1) << size << " " << rank << " " << peer;
      }
    }
  }
}

TEST(Topology, HasTheRingInRankOrder) {
  const Topology five(5);
  EXPECT_EQ(five.ring_prev(0), 4);
  EXPECT_EQ(five.ring_next(4), 0);
  EXPECT_EQ(five.ring_next(2), 3);
  const Topology one(1);
  EXPECT_EQ(one.ring_prev(0), -1);
  EXPECT_EQ(one.ring_next(0), -1);
  EXPECT_TRUE(one.neighbors(0).empty());
}

// Derived by hand from the rule in topology.h: the heap 0(1(3,4),2(5,6)) is walked in the order 0, 1, 3, 4,
// and then the right subtree backwards: 6, 5, 2.
TEST(Topology, LaysRanksAlongAWalkThatReturnsToTheRoot) {
  const Topology seven(7);
  EXPECT_EQ(seven.parent(1), 0);
  EXPECT_THAT(seven.tree_neighbors(0), UnorderedElementsAre(1, 6));
  EXPECT_THAT(seven.tree_neighbors(1), ElementsAre(0, 2, 3));
  EXPECT_THAT(seven.tree_neighbors(6), UnorderedElementsAre(0, 4, 5));
}

TEST(Topology, SharesMostRingEdgesWithTheTree) {
  const Topology topology(1000);
  int shared = 0;
  for (int rank = 0; rank < 1000; ++rank) {
    const std::vector<int>& tree = topology.tree_neighbors(rank);
    shared += static_cast<int>(std::count(tree.begin(), tree.end(), topology.ring_next(rank)));
  }
  EXPECT_GE(shared, 500);
}

TEST(Topology, NeverPutsNeighborsOnOneLevelAndNeedsFewLevels) {
  for (const int size : kSizes) {
    const Topology topology(size);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_LE(topology.neighbors(rank).size(), 5U);
      EXPECT_LT(topology.level(rank), 6);
      for (const int peer : topology.neighbors(rank)) {
        EXPECT_NE(topology.connects(rank, peer), topology.connects(peer, rank)) << size;
      }
    }
  }
}

}  // namespace
}  // namespace warren::tracker
