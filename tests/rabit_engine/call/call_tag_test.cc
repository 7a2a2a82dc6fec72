#include "rabit_engine/call/call_tag.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/reduce/reduction.h"

namespace warren {
namespace {

const Reduction& Sum() {
  static const Reduction sum = Reduction::Typed(DataType::kFloat, ReduceOp::kSum);
  return sum;
}

TEST(CallTag, SaysWhatAllRanksHaveToAgreeOn) {
  char buffer[64] = {};
  const std::vector<std::size_t> equal{0, 4, 8};
  const std::vector<std::size_t> ragged{0, 3, 8};
  EXPECT_EQ(Describe(TagOf(Operation::Allreduce(buffer, 12, Sum()))), "allreduce of 12 float, sum (call 0)");
  EXPECT_EQ(Describe(TagOf(Operation::Reduce(buffer, 12, Sum(), 1))),
            "reduce of 12 float, sum to root 1 (call 0)");
  EXPECT_EQ(Describe(TagOf(Operation::Broadcast(buffer, 5, 1))), "broadcast of 5 bytes from root 1 (call 0)");
  EXPECT_EQ(Describe(TagOf(Operation::Barrier())), "barrier (call 0)");
  EXPECT_EQ(TagOf(Operation::Allgather(buffer, equal)).count, 8);
  EXPECT_NE(TagOf(Operation::Allgather(buffer, equal)), TagOf(Operation::Allgather(buffer, ragged)))
      << "slices of other lengths with the same total";
  EXPECT_EQ(TagOf(Operation::Allreduce(buffer, 12, Sum())),
            TagOf(Operation::Allreduce(buffer, buffer + 1, 12, Sum())))
      << "where the buffers are is each rank's own affair";
}

TEST(CallTag, ABarrierWhereThisRankMakesAnotherCallMayBeThatOfLeaving) {
  char buffer[64] = {};
  const CallTag sum = TagOf(Operation::Allreduce(buffer, 12, Sum()));
  const CallTag barrier = TagOf(Operation::Barrier());
  const auto said = [](const CallTag& own, const CallTag& theirs) -> std::string {
    try {
      ThrowDifferentCalls(0, own, 1, theirs);
    } catch (const Misuse& error) {
      return error.what();
    }
  };
  constexpr const char* kLeaving = "where rank 1 calls barrier (call 0), as it does when it leaves the job";
  EXPECT_NE(said(sum, barrier).find(kLeaving), std::string::npos) << said(sum, barrier);
  EXPECT_EQ(said(barrier, sum).find("leaves the job"), std::string::npos) << said(barrier, sum);
}

TEST(CallTag, HasNoCountIfOnlyTheTwoRanksOfAMessageKnowIt) {
  char buffer[64] = {};
  const std::vector<std::size_t> offsets{0, 3, 8};
  EXPECT_EQ(TagOf(Operation::Gather(buffer, 3, buffer, offsets, 0)).count, 0);
  EXPECT_EQ(TagOf(Operation::Scatter(buffer, offsets, buffer, 3, 0)).count, 0);
  EXPECT_EQ(TagOf(Operation::AllToAll(buffer, offsets, buffer, offsets)).count, 0);
}

TEST(CallTag, HasTheBytesThatOtherVersionsRead) {
  char buffer[64] = {};
  const std::vector<std::size_t> ragged{0, 3, 8};
  const auto words = [](const CallTag& tag) { return std::bit_cast<std::array<std::uint64_t, 4>>(tag); };
  EXPECT_EQ(words(TagOf(Operation::Reduce(buffer, 12, Sum(), 1))),
            (std::array<std::uint64_t, 4>{0x0002060500000000, 12, 0x0000000400000001, 0}));
  EXPECT_EQ(words(TagOf(Operation::Broadcast(buffer, 5, 1))),
            (std::array<std::uint64_t, 4>{0x00ffff0200000000, 5, 0x0000000100000001, 0}));
  EXPECT_EQ(words(TagOf(Operation::Allgather(buffer, ragged)))[0], 0x00ffff0300000000);
  EXPECT_EQ(words(TagOf(Operation::ReduceScatter(buffer, ragged, Sum())))[0], 0x0002060400000000);
}

}  // namespace
}  // namespace warren
