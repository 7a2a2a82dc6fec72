#include "rabit_engine/collective/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "rabit_engine/base/error.h"
#include "rabit_engine/collective/choice.h"

namespace warren::collective {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

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

TEST(Registry, RefusesANameThatIsTakenAndARowThatServesNothing) {
  static constexpr Algorithm kTaken{.name = "ring", .barrier = [](PeerGroup&) {}};
  static constexpr Algorithm kIdle{.name = "idle"};
  EXPECT_THAT([] { Register(kTaken); }, ThrowsMessage<Misuse>(HasSubstr("'ring'")));
  EXPECT_THAT([] { Register(kIdle); }, ThrowsMessage<Misuse>(HasSubstr("serves no collective")));
}

}  // namespace
}  // namespace warren::collective
