#include "rabit_engine/transport/tcp/packing_policy.h"

#include <gtest/gtest.h>

namespace warren::tcp {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kMegabyte = 1'000'000;

constexpr microseconds kNear{30};

TEST(PackingPolicy, CountsALinkAsSlowUntilItsRateIsKnown) {
  PackingPolicy policy(Packing::kAuto, false);
  EXPECT_TRUE(policy.needs_progress());
  EXPECT_EQ(policy.max_share(), PackingPolicy::kMaxShare);
  for (int i = 0; i < 1000; ++i) policy.Observe({}, 16);  // what systems without the information return
  EXPECT_EQ(policy.max_share(), PackingPolicy::kMaxShare);
  PackingPolicy idle(Packing::kAuto, false);
  idle.Observe({100 * kMegabyte, milliseconds(49), kNear}, 16);
  EXPECT_EQ(idle.max_share(), PackingPolicy::kMaxShare);
}

TEST(PackingPolicy, PacksOnAFastLinkOnlyWhatGetsMuchShorter) {
  PackingPolicy gigabit(Packing::kAuto, false);
  gigabit.Observe({12 * kMegabyte, milliseconds(100), kNear}, 16);
  EXPECT_EQ(gigabit.max_share(), PackingPolicy::kMaxShare);
  PackingPolicy ten_gigabit(Packing::kAuto, false);
  ten_gigabit.Observe({120 * kMegabyte, milliseconds(100), microseconds(0)}, 16);
  EXPECT_NEAR(ten_gigabit.max_share(), 0.2, 1e-9);
  PackingPolicy memory(Packing::kAuto, false);
  memory.Observe({400 * kMegabyte, milliseconds(100), kNear}, 16);
  EXPECT_LE(memory.max_share(), 0);
}

TEST(PackingPolicy, DoesNotTakeRoundTripsForALackOfBandwidth) {
  // 64 KiB in 35 us, of which 30 us are the round trip, whether packed to a third or not.
  constexpr unsigned kMessages = 10'000;
  for (const std::uint64_t bytes : {65'536, 22'000}) {
    PackingPolicy policy(Packing::kAuto, false);
    policy.Observe({bytes * kMessages, microseconds(35) * kMessages, kNear}, kMessages);
    EXPECT_LE(policy.max_share(), 0) << bytes;
  }
  // Messages of 9 KiB over a gigabit, with a round trip of 50 us before each, or sent one after the other.
  for (const microseconds pause : {microseconds(50), microseconds(0)}) {
    PackingPolicy policy(Packing::kAuto, false);
    policy.Observe({9'216 * kMessages, (microseconds(78) + pause) * kMessages, microseconds(50)}, kMessages);
    EXPECT_GT(policy.max_share(), 0.6) << pause.count();
  }
}

TEST(PackingPolicy, FollowsTheRateOfTheTimeSinceItWasLastKnown) {
  PackingPolicy policy(Packing::kAuto, false);
  policy.Observe({400 * kMegabyte, milliseconds(100), kNear}, 16);
  policy.Observe({401 * kMegabyte, milliseconds(149), kNear}, 16);  // too short a time
  EXPECT_LE(policy.max_share(), 0);
  policy.Observe({405 * kMegabyte, milliseconds(160), kNear}, 16);
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
