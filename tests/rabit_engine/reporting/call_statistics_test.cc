#include "rabit_engine/reporting/call_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "rabit_engine/reporting/reporter.h"

namespace warren::reporting {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CallStatisticsTest : public ::testing::Test {
 protected:
  CallStatistics statistics;
  CallStatistics::Clock::time_point now;

  void Enter(std::uint32_t number) {
    CallTag tag;
    tag.sequence = number;
    tag.collective = Collective::kBroadcast;
    tag.count = 12;
    statistics.Enter(tag, now);
  }
  void Leave(std::chrono::microseconds time) {
    now += time;
    statistics.Leave(now);
  }
};

TEST_F(CallStatisticsTest, CountsByCollectiveAndAlgorithm) {
  EXPECT_THAT(statistics.Take(now).traffic, IsEmpty());
  statistics.Count(Collective::kAllreduce, "ring", 100, seconds(1));
  statistics.Count(Collective::kAllreduce, "ring", 11, milliseconds(500));
  statistics.Count(Collective::kAllreduce, "tree", 7, milliseconds(1));
  for (int time = 0; time < 2; ++time) {  // Take() leaves the counts unchanged
    const auto traffic = statistics.Take(now).traffic;
    ASSERT_THAT(traffic, SizeIs(2));
    EXPECT_EQ(traffic[0].collective, "allreduce");
    EXPECT_EQ(traffic[0].algorithm, "ring");
    EXPECT_EQ(traffic[0].calls, 2U);
    EXPECT_EQ(traffic[0].bytes, 111U);
    EXPECT_EQ(traffic[0].seconds, 1.5);
    EXPECT_EQ(traffic[1].algorithm, "tree");
  }
}

TEST_F(CallStatisticsTest, TellsTheCallAndForHowLongItIsInOrOut) {
  EXPECT_FALSE(statistics.Take(now).call);
  Enter(3);
  auto call = statistics.Take(now + seconds(2)).call;
  ASSERT_TRUE(call);
  EXPECT_EQ(call->number, 3U);
  EXPECT_EQ(call->name, "broadcast of 12 bytes from root 0");
  EXPECT_TRUE(call->inside);
  EXPECT_EQ(call->seconds, 2);
  Leave(seconds(3));
  call = statistics.Take(now + seconds(4)).call;
  EXPECT_FALSE(call->inside);
  EXPECT_EQ(call->seconds, 4);
}

TEST_F(CallStatisticsTest, LongCallsAreToldOnce) {
  Enter(1);
  Leave(std::chrono::microseconds(900));
  Enter(2);
  Leave(milliseconds(2));
  statistics.Leave(now + seconds(9));  // outside a call
  const auto waits = statistics.Take(now).waits;
  ASSERT_THAT(waits, SizeIs(1));
  EXPECT_EQ(waits[0].call, 2U);
  EXPECT_EQ(waits[0].seconds, 0.002);
  EXPECT_THAT(statistics.Take(now).waits, IsEmpty());
}

TEST_F(CallStatisticsTest, OfTooManyTheLongestAreTold) {
  const auto most = static_cast<std::uint32_t>(wire::kMaxReportedWaits);
  for (std::uint32_t number = 1; number <= most + 2; ++number) {
    Enter(number);
    Leave(milliseconds(number == 5 || number == most + 1 ? 2 : 10));
  }
  const auto taken = statistics.Take(now);
  ASSERT_THAT(taken.waits, SizeIs(most));
  for (const auto& wait : taken.waits) EXPECT_EQ(wait.seconds, 0.01);
  EXPECT_EQ(taken.waits.back().call, most + 2);
  EXPECT_EQ(taken.waits_dropped, 2U);
  EXPECT_EQ(statistics.Take(now).waits_dropped, 0U);
}

TEST_F(CallStatisticsTest, WaitsThatReachedNobodyAreToldWithTheNext) {
  const auto most = static_cast<std::uint32_t>(wire::kMaxReportedWaits);
  for (std::uint32_t number = 1; number <= most + 1; ++number) {
    Enter(number);
    Leave(milliseconds(10));
  }
  auto lost = statistics.Take(now);
  Enter(most + 2);
  Leave(milliseconds(20));
  statistics.PutBack(std::move(lost));
  const auto taken = statistics.Take(now);
  ASSERT_THAT(taken.waits, SizeIs(most));
  EXPECT_EQ(taken.waits.front().call, 2U);
  EXPECT_EQ(taken.waits.back().call, most + 2);
  EXPECT_EQ(taken.waits_dropped, 2U);
}

TEST_F(CallStatisticsTest, AnotherWorldBeginsWithoutCallsAndKeepsTheCounts) {
  Enter(7);
  Leave(milliseconds(10));
  auto lost = statistics.Take(now);
  Enter(8);
  statistics.Count(Collective::kAllreduce, "ring", 100, seconds(1));
  statistics.BeginWorld();
  statistics.PutBack(std::move(lost));
  Leave(milliseconds(10));  // the end of a call of the previous world
  const auto taken = statistics.Take(now);
  EXPECT_FALSE(taken.call);
  EXPECT_THAT(taken.waits, IsEmpty());
  EXPECT_THAT(taken.traffic, SizeIs(1));
}

TEST(Interval, GrowsWithTheWorldFrom256On) {
  EXPECT_EQ(Interval(seconds(1), 0), seconds(1));
  EXPECT_EQ(Interval(seconds(1), 256), seconds(1));
  EXPECT_EQ(Interval(seconds(2), 1024), seconds(8));
}

}  // namespace
}  // namespace warren::reporting
