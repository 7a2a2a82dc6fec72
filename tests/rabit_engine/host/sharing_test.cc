// The decision about which ranks share memory, made from all ranks' messages.
#include "rabit_engine/host/sharing.h"

#include <gmock/gmock.h>

#include "rabit_engine/base/error.h"

namespace warren {
namespace {

using testing::ElementsAre;
using Texts = std::vector<std::string>;

// Ranks 0, 2 and 3 are on one host, whose group has a space in its name; rank 1 is on another host; rank 4
// cannot share memory.
const Texts kOffers{"host/one group a", "other/ b", "host/one group c", "host/one group d", ""};

TEST(Sharing, ThoseOfAGroupThatAllHaveIt) {
  EXPECT_THAT(LeadersOf(kOffers, Texts{"1", "0", "1", "1", "0"}, Texts{"0", "-1", "0", "0", "-1"}),
              ElementsAre(0, -1, 0, 0, -1));
}

TEST(Sharing, WhoDidNotReachTheLowestIsLeftOut) {
  EXPECT_THAT(LeadersOf(kOffers, Texts{"1", "0", "0", "1", "0"}, Texts{"0", "-1", "-1", "0", "-1"}),
              ElementsAre(0, -1, -1, 0, -1));
}

TEST(Sharing, OneThatFailedLateTakesItsGroupBack) {
  EXPECT_THAT(LeadersOf(kOffers, Texts{"1", "0", "1", "1", "0"}, Texts{"0", "-1", "-1", "0", "-1"}),
              ElementsAre(-1, -1, -1, -1, -1));
}

TEST(Sharing, ARankOfAnotherVersionThatTellsNoRankIsAnErrorThatSaysSo) {
  for (const char* const told : {"", "x", "0 1", "5", "-2", "99999999999999999999"}) {
    EXPECT_THAT(
        [&] {
          LeadersOf(kOffers, Texts{"1", "0", "1", "1", "0"}, Texts{"0", "-1", told, "0", "-1"});
        },
        testing::ThrowsMessage<EngineError>(testing::HasSubstr("do all ranks run the same version?")))
        << told;
  }
}

TEST(Sharing, NobodySharesWithARankThatOffersNothing) {
  EXPECT_THAT(LeadersOf(kOffers, Texts{"1", "0", "1", "1", "0"}, Texts{"4", "-1", "0", "0", "-1"}),
              ElementsAre(-1, -1, -1, -1, -1));
}

}  // namespace
}  // namespace warren
