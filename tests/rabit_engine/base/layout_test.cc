#include "rabit_engine/base/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warren {
namespace {

using ::testing::ElementsAre;

TEST(HostLayout, NumbersHostsByTheirLowestRank) {
  const HostLayout layout({0, 1, 0, 1, 4});
  EXPECT_EQ(layout.num_hosts(), 3);
  EXPECT_THAT(layout.ranks_of(0), ElementsAre(0, 2));
  EXPECT_THAT(layout.ranks_of(1), ElementsAre(1, 3));
  EXPECT_THAT(layout.ranks_of(2), ElementsAre(4));
  EXPECT_EQ(layout.host_of(3), 1);
  EXPECT_EQ(layout.local_index(3), 1);
  EXPECT_EQ(layout.leader_of(1), 1);
}

TEST(HostLayout, HasLevelsWhenSomeHostOfSeveralHasSeveralRanks) {
  EXPECT_FALSE(HostLayout({0}).has_levels());
  EXPECT_FALSE(HostLayout({0, 0, 0}).has_levels());
  EXPECT_FALSE(HostLayout({0, 1, 2}).has_levels());
  EXPECT_TRUE(HostLayout({0, 0, 2}).has_levels());
  EXPECT_TRUE(HostLayout({0, 0, 0}).is_one_host());
  EXPECT_FALSE(HostLayout({0}).is_one_host());
}

TEST(HostLayout, KeepsTheOrderOnlyWhereHostsAreSubtreesInARow) {
  EXPECT_TRUE(HostLayout({0, 0, 2, 2}).keeps_order());
  EXPECT_TRUE(HostLayout({0, 0, 0, 0, 4, 4, 4}).keeps_order()) << "the last host may be smaller";
  EXPECT_TRUE(HostLayout({0, 0, 2, 2, 4}).keeps_order());
  EXPECT_TRUE(HostLayout({0, 1, 2}).keeps_order());
  EXPECT_FALSE(HostLayout({0, 0, 0, 3, 3, 3}).keeps_order()) << "three is no power of two";
  EXPECT_FALSE(HostLayout({0, 1, 0, 1}).keeps_order()) << "ranks take turns";
  EXPECT_FALSE(HostLayout({0, 0, 2, 3, 3}).keeps_order()) << "a smaller host in the middle";
  EXPECT_FALSE(HostLayout({0, 0, 2, 2, 2}).keeps_order()) << "a larger host at the end";
}

TEST(HostLayout, KnowsWhetherTheRanksOfEachHostFollowEachOther) {
  EXPECT_TRUE(HostLayout({0, 0, 0, 3, 3, 3}).hosts_are_consecutive());
  EXPECT_TRUE(HostLayout({0, 0, 2, 3, 3, 3}).hosts_are_consecutive());
  EXPECT_FALSE(HostLayout({0, 1, 0, 1}).hosts_are_consecutive());
  EXPECT_FALSE(HostLayout({0, 0, 2, 0, 4}).hosts_are_consecutive());
}

TEST(HostLayout, KnowsWhetherHostsAreEqual) {
  EXPECT_TRUE(HostLayout({0, 0, 0, 3, 3, 3}).hosts_are_equal());
  EXPECT_FALSE(HostLayout({0, 0, 2}).hosts_are_equal());
}

}  // namespace
}  // namespace warren
