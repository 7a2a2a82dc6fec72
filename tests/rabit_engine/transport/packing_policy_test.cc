#include "rabit_engine/transport/tcp/packing_policy.h"

#include <gtest/gtest.h>

namespace warren::tcp {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMegabyte = 1'000'000;

TEST(PackingPolicy, CountsALinkAsSlowUntilItsRateIsKnown) {
  PackingPolicy policy(Packing::kAuto, false);
  EXPECT_TRUE(policy.needs_progress());
  EXPECT_EQ(policy.max_share(), PackingPolicy::kMaxShare);
  policy.Observe({});  // what systems without the information return
  policy.Observe({});
  EXPECT_EQ(policy.max_share(), PackingPolicy::kMaxShare);
  policy.Observe({100 * kMegabyte, milliseconds(19)});
  EXPECT_EQ(policy.max_share(), PackingPolicy::kMaxShare);
}

TEST(PackingPolicy, PacksOnAFastLinkOnlyWhatGetsMuchShorter) {
  PackingPolicy gigabit(Packing::kAuto, false);
  gigabit.Observe({12 * kMegabyte, milliseconds(100)});
  EXPECT_EQ(gigabit.max_share(), PackingPolicy::kMaxShare);
  PackingPolicy ten_gigabit(Packing::kAuto, false);
  ten_gigabit.Observe({120 * kMegabyte, milliseconds(100)});
  EXPECT_NEAR(ten_gigabit.max_share(), 0.2, 1e-9);
  PackingPolicy memory(Packing::kAuto, false);
  memory.Observe({400 * kMegabyte, milliseconds(100)});
  EXPECT_LE(memory.max_share(), 0);
}

TEST(PackingPolicy, FollowsTheRateOfTheTimeSinceItWasLastKnown) {
  PackingPolicy policy(Packing::kAuto, false);
  policy.Observe({400 * kMegabyte, milliseconds(100)});
  policy.Observe({401 * kMegabyte, milliseconds(119)});  // too short a time
  EXPECT_LE(policy.max_share(), 0);
  policy.Observe({403 * kMegabyte, milliseconds(130)});
  EXPECT_EQ(policy.max_share(), PackingPolicy::kMaxShare);
}

TEST(PackingPolicy, PacksNothingOnOneMachineUnlessToldTo) {
  EXPECT_EQ(PackingPolicy(Packing::kAuto, true).max_share(), 0);
  EXPECT_EQ(PackingPolicy(Packing::kOff, false).max_share(), 0);
  EXPECT_EQ(PackingPolicy(Packing::kAlways, true).max_share(), 1);
  EXPECT_FALSE(PackingPolicy(Packing::kAuto, true).needs_progress());
}

}  // namespace
}  // namespace warren::tcp
