#include "rabit_engine/collective/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "rabit_engine/base/error.h"
#include "rabit_engine/collective/choice.h"
#include "rabit_engine/collective/halving_doubling.h"
#include "rabit_engine/collective/linear.h"
#include "rabit_engine/collective/pairwise.h"
#include "rabit_engine/collective/recursive_doubling.h"
#include "rabit_engine/collective/ring.h"
#include "rabit_engine/collective/tree.h"

namespace warren::collective {
namespace {

using ::testing::HasSubstr;

/// A situation in which every algorithm is possible.
Situation AnythingGoes(Collective collective) {
  Situation situation;
  situation.collective = collective;
  situation.bytes = 1000;
  situation.ranks = 4;
  situation.one_host = true;
  situation.levels = true;
  return situation;
}

std::string RefusalOf(const Algorithm& algorithm) {
  try {
    Register(algorithm);
  } catch (const Misuse& error) {
    return error.what();
  }
  return "";
}

TEST(Registry, NamesAndIdsAreUnique) {
  std::set<std::string_view> names;
  std::set<int> ids;
  for (const Algorithm* algorithm : Algorithms()) {
    EXPECT_TRUE(names.insert(algorithm->name).second) << algorithm->name;
    EXPECT_TRUE(ids.insert(IdOf(*algorithm)).second) << algorithm->name;
    EXPECT_EQ(FindAlgorithm(algorithm->name), algorithm);
  }
  EXPECT_EQ(FindAlgorithm("rign"), nullptr);
}

TEST(Registry, EveryRowServesACollectiveAndCanBeAskedForInEachThatItServes) {
  for (const Algorithm* algorithm : Algorithms()) {
    int served = 0;
    for (const Collective collective : kCollectives) {
      const std::string wish = std::string(Name(collective)) + "=" + std::string(algorithm->name);
      if (!algorithm->Serves(collective)) {
        EXPECT_THROW(ForcedAlgorithms{wish}, Misuse) << wish;
        continue;
      }
      ++served;
      EXPECT_EQ(&Choose(AnythingGoes(collective), ForcedAlgorithms(wish)), algorithm) << wish;
      EXPECT_EQ(&Choose(AnythingGoes(collective), ForcedAlgorithms(std::string(algorithm->name))), algorithm);
    }
    EXPECT_GT(served, 0) << algorithm->name;
    const bool copies_alone = algorithm->allreduce_into != nullptr && algorithm->allreduce == nullptr;
    EXPECT_FALSE(copies_alone) << algorithm->name;
  }
}

TEST(Registry, EachNameHasTheFunctionsOfThatName) {
  const auto row = [](std::string_view name) { return *FindAlgorithm(name); };
  EXPECT_EQ(row("tree").allreduce, AllreduceTree);
  EXPECT_EQ(row("tree").reduce, ReduceTree);
  EXPECT_EQ(row("tree").broadcast, BroadcastTree);
  EXPECT_EQ(row("tree").barrier, BarrierTree);
  EXPECT_EQ(row("recursive_doubling").allreduce, AllreduceRecursiveDoubling);
  EXPECT_EQ(row("halving_doubling").allreduce, AllreduceHalvingDoubling);
  EXPECT_EQ(row("pairwise").allreduce, AllreducePairwise);
  EXPECT_EQ(row("pairwise").reduce_scatter, ReduceScatterPairwise);
  EXPECT_EQ(row("pairwise").allgather, AllgatherPairwise);
  EXPECT_EQ(row("ring").allreduce, AllreduceRing);
  EXPECT_EQ(row("ring").reduce_scatter, ReduceScatterRing);
  EXPECT_EQ(row("ring").allgather, AllgatherRing);
  EXPECT_EQ(row("ring").broadcast, BroadcastRing);
  EXPECT_EQ(row("bruck").allgather, AllgatherBruck);
  EXPECT_EQ(row("dissemination").barrier, BarrierDissemination);
  EXPECT_EQ(row("pairwise").all_to_all, AllToAllPairwise);
  EXPECT_EQ(row("linear").gather, GatherLinear);
  EXPECT_EQ(row("linear").scatter, ScatterLinear);
}

TEST(Registry, RefusesANameThatIsTakenAndARowThatServesNothing) {
  static constexpr Algorithm kTaken{.name = "ring", .barrier = [](PeerGroup&) {}};
  static constexpr Algorithm kIdle{.name = "idle"};
  EXPECT_THAT(RefusalOf(kTaken), HasSubstr("'ring'"));
  EXPECT_THAT(RefusalOf(kIdle), HasSubstr("serves no collective"));
}

}  // namespace
}  // namespace warren::collective
