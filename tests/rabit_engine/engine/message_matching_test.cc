// The matching of messages and receives: single cases, and thousands of random orders compared with a plain
// search.
#include "rabit_engine/engine/message_matching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace warren {
namespace {

using Id = MessageMatching::Id;
constexpr int kAny = MessageMatching::kAnyRank;

TEST(MessageMatching, FirstSentIsFirstReceivedOfOneRankAndTag) {
  MessageMatching matching;
  EXPECT_EQ(matching.Arrive(1, 0, 7), std::nullopt);
  EXPECT_EQ(matching.Arrive(2, 0, 7), std::nullopt);
  EXPECT_EQ(matching.Post(10, 0, 7), 1U);
  EXPECT_EQ(matching.Post(11, 0, 7), 2U);
  EXPECT_EQ(matching.Post(12, 0, 7), std::nullopt);
  EXPECT_EQ(matching.Post(13, 0, 7), std::nullopt);
  EXPECT_EQ(matching.Arrive(3, 0, 7), 12U);
  EXPECT_EQ(matching.Arrive(4, 0, 7), 13U);
}

TEST(MessageMatching, TagsAndRanksAreToldApart) {
  MessageMatching matching;
  EXPECT_EQ(matching.Post(10, 1, 7), std::nullopt);
  EXPECT_EQ(matching.Arrive(1, 1, 8), std::nullopt);
  EXPECT_EQ(matching.Arrive(2, 2, 7), std::nullopt);
  EXPECT_EQ(matching.Arrive(3, 1, 7), 10U);
  EXPECT_EQ(matching.Post(11, 2, 7), 2U);
  EXPECT_EQ(matching.Post(12, 1, 8), 1U);
}

TEST(MessageMatching, AReceiveFromAnyRankTakesWhatCameFirst) {
  MessageMatching matching;
  matching.Arrive(1, 3, 7);
  matching.Arrive(2, 1, 7);
  EXPECT_EQ(matching.Post(10, kAny, 7), 1U);
  EXPECT_EQ(matching.Post(11, kAny, 7), 2U);
  // If a message matches both a receive from any rank and a receive from rank 1, the older receive gets it.
  EXPECT_EQ(matching.Post(12, kAny, 7), std::nullopt);
  EXPECT_EQ(matching.Post(13, 1, 7), std::nullopt);
  EXPECT_EQ(matching.Arrive(3, 1, 7), 12U);
  EXPECT_EQ(matching.Arrive(4, 1, 7), 13U);
}

TEST(MessageMatching, KnowsWhoseMessagesMayBeWanted) {
  MessageMatching matching;
  EXPECT_FALSE(matching.AwaitsFrom(1));
  matching.Post(10, 1, 7);
  EXPECT_TRUE(matching.AwaitsFrom(1));
  EXPECT_FALSE(matching.AwaitsFrom(2));
  matching.Post(11, kAny, 9);
  EXPECT_TRUE(matching.AwaitsFrom(2));
  matching.Arrive(1, 2, 9);
  EXPECT_FALSE(matching.AwaitsFrom(2));
  matching.Arrive(2, 1, 7);
  EXPECT_FALSE(matching.AwaitsFrom(1));
}

/// The matching rule in its simplest form.
class PlainMatching {
 public:
  std::optional<Id> Post(Id receive, int from, std::uint64_t tag) {
    const auto found = std::find_if(messages_.begin(), messages_.end(), [&](const One& message) {
      return message.tag == tag && (from == kAny || message.rank == from);
    });
    return Take(messages_, found, receives_, {receive, from, tag});
  }
  std::optional<Id> Arrive(Id message, int from, std::uint64_t tag) {
    const auto found = std::find_if(receives_.begin(), receives_.end(), [&](const One& receive) {
      return receive.tag == tag && (receive.rank == kAny || receive.rank == from);
    });
    return Take(receives_, found, messages_, {message, from, tag});
  }
  bool AwaitsFrom(int rank) const {
    return std::any_of(receives_.begin(), receives_.end(),
                       [&](const One& receive) { return receive.rank == kAny || receive.rank == rank; });
  }

 private:
  struct One {
    Id id;
    int rank;
    std::uint64_t tag;
  };
  static std::optional<Id> Take(std::vector<One>& from, std::vector<One>::iterator found,
                                std::vector<One>& to, const One& own) {
    if (found == from.end()) {
      to.push_back(own);
      return std::nullopt;
    }
    const Id id = found->id;
    from.erase(found);
    return id;
  }

  std::vector<One> receives_;
  std::vector<One> messages_;
};

TEST(MessageMatching, DoesWhatTheRuleSaysInThousandsOfOrders) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    MessageMatching matching;
    PlainMatching plain;
    const int ranks = 1 + below(4);
    const int tags = 1 + below(3);
    const int likes_any = below(5);
    for (Id id = 0; id < 100; ++id) {
      const auto tag = static_cast<std::uint64_t>(below(tags));
      if (below(2) == 0) {
        const int from = below(5) < likes_any ? kAny : below(ranks);
        ASSERT_EQ(matching.Post(id, from, tag), plain.Post(id, from, tag)) << "seed " << seed;
      } else {
        const int from = below(ranks);
        ASSERT_EQ(matching.Arrive(id, from, tag), plain.Arrive(id, from, tag)) << "seed " << seed;
      }
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(matching.AwaitsFrom(rank), plain.AwaitsFrom(rank)) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace warren
