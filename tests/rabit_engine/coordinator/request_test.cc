#include "rabit_engine/coordinator/request.h"

#include <gtest/gtest.h>

#include <string>

#include "rabit_engine/base/error.h"
#include "tests/rabit_engine/coordinator/simulated_world.h"

namespace warren::coordinator {
namespace {

TEST(Request, SaysWhatItIs) {
  Signature what = Sum("x", 12).signature;
  EXPECT_EQ(Describe(what), "an allreduce (sum) of 12 elements of float");
  what.average = true;
  EXPECT_EQ(Describe(what), "an allreduce (average) of 12 elements of float");
  what.custom = true;
  EXPECT_EQ(Describe(what), "an allreduce (a function) of 48 bytes");
  what = {};
  what.kind = Collective::kBroadcast;
  what.root = 3;
  what.count = 100;
  EXPECT_EQ(Describe(what), "a broadcast from rank 3 of 100 bytes");
  what.kind = Collective::kBarrier;
  EXPECT_EQ(Describe(what), "a barrier");
}

TEST(Request, BytesThatAreCutOrTooManyAreRefused) {
  RankReport message;
  message.requests.push_back({Sum("x"), 1.5});
  message.joins = true;
  const std::string whole = Encode(message);
  const RankReport back = DecodeReport(whole);
  ASSERT_EQ(back.requests.size(), 1u);
  EXPECT_EQ(back.requests[0].request, message.requests[0].request);
  EXPECT_EQ(back.requests[0].waiting, 1.5);
  EXPECT_TRUE(back.joins);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(DecodeReport(whole.substr(0, length)), EngineError) << length;
  }
  EXPECT_THROW(DecodeReport(whole + "x"), EngineError);
}

}  // namespace
}  // namespace warren::coordinator
