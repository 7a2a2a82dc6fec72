#include "rabit_engine/host/core_distance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace warren {
namespace {

constexpr double kNear = 55;
constexpr double kFar = 150;

/// Reports `count` reads of `ns` nanoseconds each. Returns the number of times that is_far() has changed.
int Note(CoreDistance& distance, double ns, int count) {
  int changes = 0;
  for (int i = 0; i < count; ++i) {
    const bool was_far = distance.is_far();
    distance.Note(ns);
    changes += distance.is_far() != was_far ? 1 : 0;
  }
  return changes;
}

TEST(CoreDistance, IsNearUntilSeveralReadsWereSlow) {
  CoreDistance distance;
  EXPECT_EQ(Note(distance, kFar, 2), 0);
  EXPECT_FALSE(distance.is_far());
  EXPECT_EQ(Note(distance, kFar, 100), 1);
  EXPECT_TRUE(distance.is_far());
}

TEST(CoreDistance, FollowsACoreThatMoves) {
  CoreDistance distance;
  for (int move = 0; move < 5; ++move) {
    EXPECT_EQ(Note(distance, kFar, 10), 1);
    EXPECT_TRUE(distance.is_far());
    EXPECT_EQ(Note(distance, kNear, 10), 1);
    EXPECT_FALSE(distance.is_far());
  }
}

TEST(CoreDistance, IsNotChangedBySingleOutliers) {
  CoreDistance distance;
  for (int i = 0; i < 100; ++i) {
    Note(distance, kNear, 2);
    EXPECT_EQ(Note(distance, kFar, 1), 0);
  }
  EXPECT_FALSE(distance.is_far());
}

TEST(CoreDistance, IgnoresReadsFromTheOwnCacheAndInterruptedOnes) {
  CoreDistance distance;
  Note(distance, kFar, 10);
  EXPECT_EQ(Note(distance, 20, 100), 0);
  EXPECT_EQ(Note(distance, 5000, 100), 0);
  EXPECT_EQ(Note(distance, std::nan(""), 100), 0);
  EXPECT_TRUE(distance.is_far());
  Note(distance, kNear, 10);
  EXPECT_EQ(Note(distance, 5000, 100), 0);
  EXPECT_FALSE(distance.is_far());
}

TEST(CoreDistance, TicksNeverGoBack) {
  std::uint64_t last = ReadTicks();
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t now = ReadTicks();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace warren
