#include "rabit_engine/coordinator/ready_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/rabit_engine/coordinator/simulated_world.h"

namespace warren::coordinator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Ready Of(const Request& request) {
  return {std::make_shared<const Request>(request), {}};
}

TEST(ReadyList, PacksWhatGoesTogetherUpToTheLimit) {
  ReadyList list;
  for (const auto& [name, count] : {std::pair{"a", 10}, {"b", 10}, {"large", 1000}, {"c", 5}, {"d", 10}}) {
    list.Add(Of(Sum(name, static_cast<std::uint64_t>(count))));
  }
  Request of_doubles = Sum("doubles", 1);
  of_doubles.signature.type = 7;
  list.Add(Of(of_doubles));
  EXPECT_THAT(NamesOf(list.TakeBatch(100)), ElementsAre("a", "b", "c"));  // 25 elements of 4 bytes
  EXPECT_THAT(NamesOf(list.TakeBatch(100)), ElementsAre("large"));
  EXPECT_THAT(NamesOf(list.TakeBatch(100)), ElementsAre("d"));
  EXPECT_THAT(NamesOf(list.TakeBatch(100)), ElementsAre("doubles"));
  EXPECT_TRUE(list.empty());
  EXPECT_THAT(NamesOf(list.TakeBatch(100)), IsEmpty());
}

TEST(ReadyList, PacksNoFunctionsOfTheCallersAndNoErrors) {
  ReadyList list;
  Request custom = Sum("custom");
  custom.signature.custom = true;
  list.Add(Of(Sum("a")));
  list.Add(Of(custom));
  list.Add({std::make_shared<const Request>(Sum("wrong")), "an error"});
  Request average = Sum("average");
  average.signature.average = true;
  list.Add(Of(average));
  list.Add(Of(Sum("b")));
  EXPECT_THAT(NamesOf(list.TakeBatch(1000)), ElementsAre("a", "b"));
  EXPECT_THAT(NamesOf(list.TakeBatch(1000)), ElementsAre("custom"));
  EXPECT_THAT(NamesOf(list.TakeBatch(1000)), ElementsAre("wrong"));
  EXPECT_THAT(NamesOf(list.TakeBatch(1000)), ElementsAre("average"));
}

TEST(ReadyList, TakesOneByOneWithoutFusion) {
  ReadyList list;
  list.Add(Of(Sum("a", 0)));
  list.Add(Of(Sum("b", 0)));
  EXPECT_THAT(NamesOf(list.TakeBatch(0)), ElementsAre("a"));
  EXPECT_THAT(NamesOf(list.TakeBatch(0)), ElementsAre("b"));
}

}  // namespace
}  // namespace warren::coordinator
