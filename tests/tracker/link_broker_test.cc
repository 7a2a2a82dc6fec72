#include "tracker/link_broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warren::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// In a world of three, all ranks link to each other, and each rank's level is the rank itself: 0 listens, 1
// connects to 0, and 2 connects to both.
class BrokerOfThree : public ::testing::Test {
 protected:
  LinkBroker::TimePoint now{};
  Topology topology{3};
  LinkBroker broker{topology};

  void Want(int rank, const std::vector<int>& good = {}, bool retry = false) {
    if (!retry) broker.Join(rank);
    ASSERT_EQ(broker.ReportGood(rank, good, retry, now), std::nullopt);
  }
  void Listen(int rank) {
    broker.ReportLinked(rank);
    broker.ReportListening(rank);
  }
  std::vector<int> ReadyRanks() {
    std::vector<int> ranks;
    for (const LinkBroker::Plan& plan : broker.TakeReady(now)) ranks.push_back(plan.rank);
    return ranks;
  }
  void LinkAll() {
    for (int rank = 0; rank < 3; ++rank) {
      Want(rank);
      ASSERT_THAT(ReadyRanks(), ElementsAre(rank));
      Listen(rank);
    }
  }
};

TEST_F(BrokerOfThree, AnswersAWorkerOnlyOnceThePeersBelowItListen) {
  Want(2);
  EXPECT_THAT(ReadyRanks(), IsEmpty());
  Want(1);
  EXPECT_THAT(ReadyRanks(), IsEmpty());
  Want(0);
  const auto first = broker.TakeReady(now);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].rank, 0);
  EXPECT_THAT(first[0].connect, IsEmpty());
  EXPECT_EQ(first[0].num_accept, 2);
  Listen(0);
  EXPECT_THAT(ReadyRanks(), ElementsAre(1));
  Listen(1);
  const auto last = broker.TakeReady(now);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_THAT(last[0].connect, ElementsAre(0, 1));
  EXPECT_EQ(last[0].num_accept, 0);
  EXPECT_FALSE(broker.complete());
  Listen(2);
  EXPECT_TRUE(broker.complete());
}

TEST_F(BrokerOfThree, LinksARestartedWorkerInOnceItsNeighborsCome) {
  LinkAll();
  Want(1);
  EXPECT_FALSE(broker.complete());
  EXPECT_THAT(ReadyRanks(), IsEmpty()) << "rank 0 does not listen for rank 1 before it comes to recover";
  Want(0, {2});
  EXPECT_THAT(ReadyRanks(), ElementsAre(0));
  Listen(0);
  EXPECT_THAT(ReadyRanks(), ElementsAre(1));
  Listen(1);
  Want(2, {0});
  EXPECT_THAT(ReadyRanks(), ElementsAre(2));
  EXPECT_FALSE(broker.complete());
  Listen(2);
  EXPECT_TRUE(broker.complete());
}

TEST_F(BrokerOfThree, TriesAFailedConnectionAgainLaterAndAtOnceWhenThePeerListensAnew) {
  Want(0);
  ReadyRanks();
  Listen(0);
  Want(1);
  EXPECT_THAT(ReadyRanks(), ElementsAre(1));
  Want(1, {}, true);
  EXPECT_THAT(ReadyRanks(), IsEmpty());
  ASSERT_TRUE(broker.NextRetry());
  EXPECT_EQ(*broker.NextRetry(), now + LinkBroker::kFirstRetryDelay);
  now = *broker.NextRetry();
  EXPECT_THAT(ReadyRanks(), ElementsAre(1));
  EXPECT_EQ(broker.NextRetry(), std::nullopt);

  Want(1, {}, true);
  EXPECT_EQ(*broker.NextRetry(), now + 2 * LinkBroker::kFirstRetryDelay);
  Want(0);
  EXPECT_THAT(ReadyRanks(), ElementsAre(0));
  Listen(0);
  EXPECT_THAT(ReadyRanks(), ElementsAre(1)) << "a new port needs no waiting";
}

// Rank 2 connects to ranks 0 and 1, and rank 1 to rank 0. Rank 2 dies, and rank 0 returns to the tracker to
// renew only its link to rank 2; then rank 1 dies, too. Now rank 0 waits for rank 2, rank 2 waits until rank
// 1 listens, and rank 1 waits until rank 0 returns again.
TEST_F(BrokerOfThree, BreaksACircleOfWaitingByTakingAnothersPlace) {
  LinkAll();
  Want(0, {1});
  EXPECT_THAT(ReadyRanks(), ElementsAre(0));
  Listen(0);
  Want(2);
  Want(1);
  EXPECT_THAT(ReadyRanks(), IsEmpty());
  now += LinkBroker::kBorrowDelay;
  EXPECT_THAT(ReadyRanks(), ElementsAre(1));
  Listen(1);
  EXPECT_THAT(ReadyRanks(), IsEmpty()) << "the place at rank 0 is taken";
  Want(0, {1});
  EXPECT_THAT(ReadyRanks(), ElementsAre(0));
  Listen(0);
  EXPECT_THAT(ReadyRanks(), ElementsAre(2));
  Listen(2);
  EXPECT_TRUE(broker.complete());
}

TEST_F(BrokerOfThree, CountsNoConnectionToAPeerThatHasBegunAnew) {
  Want(0);
  ReadyRanks();
  Listen(0);
  Want(1);
  ASSERT_THAT(ReadyRanks(), ElementsAre(1));
  Want(0);  // rank 0 was restarted after rank 1 had connected to it
  ReadyRanks();
  Listen(0);
  Listen(1);
  EXPECT_FALSE(broker.complete());
  Want(1);
  EXPECT_THAT(ReadyRanks(), ElementsAre(1)) << "the new rank 0 still has a place for rank 1";
}

TEST_F(BrokerOfThree, ForgetsAWorkerThatLeftBeforeItListened) {
  Want(0);
  ReadyRanks();
  broker.Leave(0);
  Want(1);
  EXPECT_THAT(ReadyRanks(), IsEmpty());
  Want(0);
  EXPECT_THAT(ReadyRanks(), ElementsAre(0));
}

TEST_F(BrokerOfThree, NamesAGoodLinkThatIsNoNeighbor) {
  broker.Join(1);
  EXPECT_EQ(broker.ReportGood(1, {0, 17}, false, now), 17);
  EXPECT_EQ(broker.ReportGood(1, {1}, false, now), 1);
  EXPECT_EQ(broker.ReportGood(1, {0, 2}, false, now), std::nullopt);
}

TEST(LinkBroker, NeedsNoLinksInAWorldOfOne) {
  const Topology topology(1);
  LinkBroker broker(topology);
  broker.Join(0);
  broker.ReportGood(0, {}, false, {});
  const auto ready = broker.TakeReady({});
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].num_accept, 0);
  broker.ReportLinked(0);
  broker.ReportListening(0);
  EXPECT_TRUE(broker.complete());
}

}  // namespace
}  // namespace warren::tracker
