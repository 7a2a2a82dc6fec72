// The placement of an elastic job's workers on hosts, and the exclusion of hosts.
#include "submit/cluster/seats.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace warren::submit {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

SeatedTask On(const std::string& host, int slot = 0, bool joined = true) {
  return {Seat{host, slot}, {}, joined, false};
}
SeatedTask Waiting(const std::string& last_host = "") {
  return {std::nullopt, last_host, false, false};
}

std::vector<std::string> Starts(const SeatChanges& changes) {
  std::vector<std::string> starts;
  for (const auto& [task, seat] : changes.starts)
    starts.push_back(fmt::format("{} on {} {}", task, seat.host, seat.slot));
  return starts;
}

class SeatsTest : public testing::Test {
 protected:
  SeatChanges Change(const std::vector<HostRoom>& hosts,
                     const std::vector<std::optional<SeatedTask>>& tasks) {
    return ChangeSeats(hosts, tasks, losses_, now_);
  }

  HostLosses losses_;
  TimePoint now_{1h};
};

TEST_F(SeatsTest, HostsAreFilledInTheirOrderUpToTheirSlots) {
  const SeatChanges changes = Change({{"a", 2}, {"b", 1}}, {Waiting(), Waiting(), Waiting(), Waiting()});
  EXPECT_THAT(Starts(changes), ElementsAre("0 on a 0", "1 on a 1", "2 on b 0"));
  EXPECT_EQ(changes.num_possible, 3);
  EXPECT_EQ(changes.next, std::nullopt);
}

TEST_F(SeatsTest, ATaskReturnsToItsHostAndToAFreeSlotThere) {
  const SeatChanges changes = Change({{"a", 1}, {"b", 2}}, {Waiting(), On("b", 0), Waiting("b")});
  EXPECT_THAT(Starts(changes), ElementsAre("2 on b 1", "0 on a 0"));
}

TEST_F(SeatsTest, TasksThatHaveEndedNeedNoSeat) {
  EXPECT_THAT(Starts(Change({{"a", 4}}, {std::nullopt, On("a")})), IsEmpty());
}

TEST_F(SeatsTest, TasksLeaveAHostThatHasGoneOrHasFewerSlots) {
  const SeatChanges changes = Change({{"a", 1}}, {On("a", 0), On("a", 1), On("b", 0)});
  EXPECT_THAT(changes.leaves, ElementsAre(1, 2));
  EXPECT_EQ(changes.num_possible, 1);
}

TEST_F(SeatsTest, ATaskIsAskedToLeaveOnce) {
  std::vector<std::optional<SeatedTask>> tasks = {On("a"), On("b")};
  tasks[1]->leaving = true;
  const SeatChanges changes = Change({{"a", 1}, {"c", 1}}, tasks);
  EXPECT_THAT(changes.leaves, IsEmpty());
  EXPECT_EQ(changes.num_possible, 2) << "it will have the free slot once it has left";
}

TEST_F(SeatsTest, TheLastTaskWithTheTrainingsStateStaysUntilAnotherHasJoined) {
  std::vector<std::optional<SeatedTask>> tasks = {On("a"), On("b"), Waiting()};
  SeatChanges changes = Change({{"c", 1}}, tasks);
  EXPECT_THAT(changes.leaves, ElementsAre(1));
  EXPECT_EQ(changes.kept, 0);
  EXPECT_THAT(Starts(changes), ElementsAre("2 on c 0"));
  tasks = {On("a"), std::nullopt, On("c", 0, false)};
  EXPECT_EQ(Change({{"c", 1}}, tasks).kept, 0) << "the one on c has not joined yet";
  tasks[2]->joined = true;
  changes = Change({{"c", 1}}, tasks);
  EXPECT_THAT(changes.leaves, ElementsAre(0));
  EXPECT_EQ(changes.kept, std::nullopt);
}

TEST_F(SeatsTest, AHostThatWasLostRestsAndIsThenTriedAgain) {
  losses_.Add("a", true, now_);
  SeatChanges changes = Change({{"a", 1}}, {Waiting("a")});
  EXPECT_THAT(Starts(changes), IsEmpty());
  EXPECT_EQ(changes.num_possible, 1);
  ASSERT_EQ(changes.next, now_ + kHostRest);
  now_ = *changes.next;
  EXPECT_THAT(Starts(Change({{"a", 1}}, {Waiting("a")})), ElementsAre("0 on a 0"));
}

TEST_F(SeatsTest, AnotherHostIsUsedWhileOneRests) {
  losses_.Add("a", true, now_);
  EXPECT_THAT(Starts(Change({{"a", 1}, {"b", 1}}, {Waiting("a")})), ElementsAre("0 on b 0"));
}

TEST_F(SeatsTest, AHostThatIsLeftOutGetsNoTaskUntilItsTimeIsUp) {
  for (int i = 0; i < 3; ++i) losses_.Add("a", false, now_);
  SeatChanges changes = Change({{"a", 1}}, {Waiting("a")});
  EXPECT_THAT(Starts(changes), IsEmpty());
  EXPECT_EQ(changes.num_possible, 0);
  EXPECT_EQ(changes.next, now_ + kLossMemory);
  now_ += kLossMemory;
  EXPECT_THAT(Starts(Change({{"a", 1}}, {Waiting("a")})), ElementsAre("0 on a 0"));
}

TEST(HostLossesTest, AHostIsLeftOutByItsThirdLossWithinTenMinutes) {
  HostLosses losses;
  TimePoint now{1h};
  EXPECT_FALSE(losses.Add("a", false, now));
  EXPECT_FALSE(losses.Add("a", false, now += 6min));
  EXPECT_FALSE(losses.Add("a", false, now += 6min));
  EXPECT_FALSE(losses.Add("b", false, now));
  EXPECT_FALSE(losses.IsLeftOut("a", now));
  EXPECT_TRUE(losses.Add("a", false, now += 1min));
  EXPECT_TRUE(losses.IsLeftOut("a", now));
  EXPECT_FALSE(losses.IsLeftOut("b", now));
}

TEST(HostLossesTest, AFurtherLossMakesItLongerAndIsNotNamedAgain) {
  HostLosses losses;
  TimePoint now{1h};
  for (int i = 0; i < 3; ++i) losses.Add("a", false, now);
  EXPECT_FALSE(losses.Add("a", false, now += 9min));
  EXPECT_TRUE(losses.IsLeftOut("a", now += 9min));
  EXPECT_FALSE(losses.IsLeftOut("a", now += 1min));
  EXPECT_FALSE(losses.Add("a", false, now)) << "the earlier losses are forgotten";
  EXPECT_FALSE(losses.IsLeftOut("a", now));
}

TEST(HostLossesTest, ARestAndALeavingOutEndOneAfterTheOther) {
  HostLosses losses;
  const TimePoint now{1h};
  losses.Add("a", true, now);
  EXPECT_EQ(losses.AvoidedUntil("a", now), now + kHostRest);
  EXPECT_EQ(losses.AvoidedUntil("a", now + kHostRest), std::nullopt);
  losses.Add("a", true, now);
  losses.Add("a", true, now);
  EXPECT_EQ(losses.AvoidedUntil("a", now), now + kLossMemory);
}

}  // namespace
}  // namespace warren::submit
