#include "rabit_engine/collective/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rabit_engine/base/error.h"

namespace warren::collective {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Situation Allreduce(std::size_t bytes, int ranks) {
  Situation situation;
  situation.collective = Collective::kAllreduce;
  situation.bytes = bytes;
  situation.ranks = ranks;
  situation.order_matters = true;
  return situation;
}

std::string Refusal(const Situation& situation, const std::string& wish) {
  try {
    Choose(situation, ForcedAlgorithms(wish));
  } catch (const Misuse& error) {
    return error.what();
  }
  return "";
}

TEST(Choice, FindsAnAlgorithmForEverySituation) {
  for (const Collective collective :
       {Collective::kAllreduce, Collective::kBroadcast, Collective::kAllgather, Collective::kReduceScatter,
        Collective::kReduce, Collective::kBarrier}) {
    for (int flags = 0; flags < 128; ++flags) {
      for (const int ranks : {2, 3, 64, 65, 1000, 1024}) {
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{5000}, std::size_t{1} << 33}) {
          Situation situation{collective, bytes, ranks};
          situation.one_host = (flags & 1) != 0;
          situation.levels = (flags & 1) == 0 && (flags & 2) != 0;
          situation.fits = (flags & 4) != 0;
          situation.levels_may_reduce = (flags & 8) != 0;
          situation.order_matters = (flags & 16) != 0;
          situation.rounds = (flags & 32) != 0;
          situation.consecutive = (flags & 64) != 0;
          EXPECT_TRUE(Choose(situation, {}).Serves(collective));
        }
      }
    }
  }
}

TEST(Choice, TakesSharedMemoryOnOneHost) {
  Situation situation = Allreduce(1 << 20, 4);
  situation.one_host = true;
  EXPECT_EQ(Choose(situation, {}).name, "shared_memory");
  situation.fits = false;
  EXPECT_NE(Choose(situation, {}).name, "shared_memory") << "huge elements do not fit its stages";
}

TEST(Choice, ReducesInsideHostsOnlyWhereThatKeepsTheOrder) {
  Situation situation = Allreduce(1 << 20, 6);
  situation.levels = true;
  EXPECT_EQ(Choose(situation, {}).name, "hierarchical");
  situation.levels_may_reduce = false;
  EXPECT_NE(Choose(situation, {}).name, "hierarchical");
  situation.order_matters = false;
  EXPECT_EQ(Choose(situation, {}).name, "hierarchical") << "integers may be combined in any order";
}

TEST(Choice, ReducesToPartialSumsInsideHostsThatAreNoSubtrees) {
  Situation situation = Allreduce(1 << 20, 48);
  situation.levels = true;
  situation.levels_may_reduce = false;
  situation.hosts = 16;
  EXPECT_EQ(Choose(situation, {}).name, "hierarchical_subtrees");
  situation.hosts = 33;
  EXPECT_EQ(Choose(situation, {}).name, "halving_doubling") << "the last host would serve all others";
  situation.hosts = 16;
  situation.fits = false;
  EXPECT_EQ(Choose(situation, {}).name, "halving_doubling");
  situation.fits = true;
  situation.consecutive = false;
  EXPECT_EQ(Choose(situation, {}).name, "halving_doubling") << "ranks take turns on the hosts";
  EXPECT_THAT(Refusal(situation, "hierarchical_subtrees"), HasSubstr("do not follow each other"));
}

TEST(Choice, KeepsAllreducesOffTheRing) {
  for (const bool order_matters : {true, false}) {
    Situation situation = Allreduce(std::size_t{1} << 30, 1000);
    situation.order_matters = order_matters;
    EXPECT_EQ(Choose(situation, {}).name, "halving_doubling");
  }
}

TEST(Choice, SendsSmallMessagesOfManyHostsInFewSteps) {
  for (const int ranks : {96, 128, 1000, 10'000}) {
    EXPECT_EQ(Choose(Allreduce(8, ranks), {}).name, "recursive_doubling") << ranks;
    EXPECT_EQ(Choose(Allreduce(16 << 10, ranks), {}).name, "recursive_doubling") << ranks;
    EXPECT_EQ(Choose(Allreduce(64 << 10, ranks), {}).name, "halving_doubling") << ranks;
  }
}

TEST(Choice, LetsNoRankServeATooLargeSibling) {
  for (const int ranks : {33, 65, 1025, 4100}) {
    EXPECT_EQ(Choose(Allreduce(8, ranks), {}).name, "tree")
        << "the last of " << ranks << " would serve all others";
  }
  EXPECT_EQ(Choose(Allreduce(8, 17), {}).name, "recursive_doubling");
}

TEST(Choice, TakesWhatWasMeasuredOfFewRanks) {
  EXPECT_EQ(Choose(Allreduce(256 << 10, 2), {}).name, "recursive_doubling");
  EXPECT_EQ(Choose(Allreduce(64 << 10, 8), {}).name, "recursive_doubling");
  EXPECT_EQ(Choose(Allreduce(32 << 10, 7), {}).name, "recursive_doubling");
  EXPECT_EQ(Choose(Allreduce(64 << 10, 7), {}).name, "pairwise");
  EXPECT_EQ(Choose(Allreduce(1 << 20, 8), {}).name, "halving_doubling");
}

TEST(Choice, SendsToAllOthersOnlyWhereTheyAreFew) {
  EXPECT_EQ(Choose(Allreduce(1 << 20, 15), {}).name, "pairwise");
  EXPECT_EQ(Choose(Allreduce(1 << 20, 24), {}).name, "halving_doubling");
}

TEST(Choice, SendsFewSmallMessagesWhereCoresAreScarce) {
  Situation situation = Allreduce(4096, 16);
  EXPECT_EQ(Choose(situation, {}).name, "recursive_doubling");
  situation.crowded = true;
  EXPECT_EQ(Choose(situation, {}).name, "tree");
  situation.collective = Collective::kBarrier;
  EXPECT_EQ(Choose(situation, {}).name, "tree");
  EXPECT_NE(Choose(Allreduce(1 << 20, 16), {}).name, "tree");
}

TEST(Choice, GathersFromFewPeersWhereCoresAreScarce) {
  const auto allgather = [](std::size_t bytes, bool crowded) {
    Situation situation = Allreduce(bytes, 16);
    situation.collective = Collective::kAllgather;
    situation.crowded = crowded;
    return Choose(situation, {}).name;
  };
  EXPECT_EQ(allgather(128 << 10, true), "bruck");
  EXPECT_EQ(allgather(128 << 10, false), "pairwise");
  EXPECT_EQ(allgather(256 << 10, true), "pairwise");
  EXPECT_EQ(allgather(1 << 20, true), "ring");
  EXPECT_EQ(allgather(1 << 20, false), "pairwise");
}

TEST(Choice, SendsLongVectorsOfHalvesAsTheyAre) {
  // An algorithm without combines_at_once would send the values as floats.
  for (const int ranks : {3, 4, 8, 64}) {
    Situation situation = Allreduce(1 << 20, ranks);
    situation.order_matters = true;
    situation.rounds = true;
    EXPECT_TRUE(Choose(situation, {}).combines_at_once) << ranks;
    situation.crowded = true;
    EXPECT_TRUE(Choose(situation, {}).combines_at_once) << ranks;
    situation.collective = Collective::kReduceScatter;
    EXPECT_TRUE(Choose(situation, {}).combines_at_once) << ranks;
  }
}

TEST(Choice, FollowsTheUsersWishWhereItCan) {
  EXPECT_EQ(Choose(Allreduce(1 << 20, 5), ForcedAlgorithms("ring")).name, "ring");
  EXPECT_EQ(Choose(Allreduce(1 << 20, 5), ForcedAlgorithms("broadcast=tree,allreduce=tree")).name, "tree");
  EXPECT_EQ(&Choose(Allreduce(8, 4), ForcedAlgorithms("broadcast=tree")), &Choose(Allreduce(8, 4), {}));
}

TEST(Choice, SaysWhyAWishCannotBe) {
  EXPECT_THAT(Refusal(Allreduce(8, 4), "shared_memory"), HasSubstr("not all ranks share the memory"));
  EXPECT_THAT(Refusal(Allreduce(8, 4), "hierarchical"), HasSubstr("several hosts"));
}

TEST(Choice, RefusesUnknownWishesByName) {
  EXPECT_THAT([] { ForcedAlgorithms("rign"); },
              ThrowsMessage<Misuse>(HasSubstr("WARREN_ALGORITHM=rign: 'rign' is not known")));
  EXPECT_THAT([] { ForcedAlgorithms("rign", "RABIT_ALGORITHM"); },
              ThrowsMessage<Misuse>(HasSubstr("RABIT_ALGORITHM=rign: 'rign' is not known")));
  EXPECT_THROW(ForcedAlgorithms("allreduce=bruck"), Misuse);
  EXPECT_THROW(ForcedAlgorithms("allred=ring"), Misuse);
}

}  // namespace
}  // namespace warren::collective
