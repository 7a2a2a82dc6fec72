#include "wire/dialect.h"

#include <gtest/gtest.h>

#include "wire/bytes.h"

namespace warren::wire {
namespace {

std::string CollectiveGreeting(const std::string& json) {
  return Writer().String(json).Take();
}

TEST(Dialect, IsClassicForEveryRankAndWorldSize) {
  for (const int rank : {-1, 0, 5, 122, 400}) {
    for (const int world : {-1, 1, 3, 123, 379, 635, 31488, 65536 + 123, 100000}) {
      EXPECT_EQ(DetectDialect(Writer().Int(rank).Int(world).Take()), Dialect::kClassic)
          << rank << " " << world;
    }
  }
}

TEST(Dialect, IsCollectiveForJson) {
  EXPECT_EQ(DetectDialect(CollectiveGreeting(R"({"world_size":-1,"rank":-1,"task_id":"0"})")),
            Dialect::kCollective);
  EXPECT_EQ(DetectDialect(CollectiveGreeting(R"({ "rank" : 0 })")), Dialect::kCollective);
}

TEST(Dialect, WaitsWhileTooFewBytesHaveCome) {
  const std::string classic = Writer().Int(-1).Int(123).Take();
  const std::string collective = CollectiveGreeting(R"({"world_size":-1})");
  for (std::size_t cut = 0; cut < 8; ++cut) {
    EXPECT_EQ(DetectDialect(std::string_view(classic).substr(0, cut)), std::nullopt);
    EXPECT_EQ(DetectDialect(std::string_view(collective).substr(0, cut)), std::nullopt);
  }
}

}  // namespace
}  // namespace warren::wire
