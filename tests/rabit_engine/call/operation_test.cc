#include "rabit_engine/call/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "rabit_engine/reduce/reduction.h"

namespace warren {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRank = 1;
constexpr int kRanks = 3;

std::string ComplaintHere(const Operation& operation) {
  return Complaint(operation, kRank, kRanks);
}

class OperationTest : public ::testing::Test {
 protected:
  std::array<char, 64> buffer_{};
  std::array<char, 64> other_{};
  const Reduction sum_ = Reduction::Typed(DataType::kInt, ReduceOp::kSum);
  const std::vector<std::size_t> offsets_{0, 2, 3, 8};
};

TEST_F(OperationTest, ThereIsNoComplaintAboutAnOperationThatIsValid) {
  const Outbound out{2, buffer_.data(), 4};
  const Outbound to_itself{kRank, buffer_.data(), 4};
  const Inbound in{0, other_.data(), 4};
  const Inbound from_itself{kRank, other_.data(), 4};
  for (const Operation& operation :
       {Operation::Allreduce(buffer_.data(), 3, sum_), Operation::Allreduce(nullptr, 0, sum_),
        Operation::Allreduce(buffer_.data(), other_.data(), 3, sum_),
        Operation::Reduce(buffer_.data(), 3, sum_, 2),
        Operation::ReduceScatter(buffer_.data(), offsets_, sum_), Operation::Broadcast(buffer_.data(), 64, 0),
        Operation::Allgather(buffer_.data(), offsets_), Operation::Allgather(buffer_.data(), 8, 2, 3),
        Operation::Barrier(), Operation::Gather(buffer_.data(), 1, nullptr, {}, 0),
        Operation::Gather(buffer_.data(), 1, other_.data(), offsets_, kRank),
        Operation::Scatter(nullptr, {}, buffer_.data(), 1, 0),
        Operation::Scatter(buffer_.data(), offsets_, other_.data(), 1, kRank),
        Operation::AllToAll(buffer_.data(), offsets_, other_.data(), offsets_),
        Operation::SendReceive({&out, 1}, {&in, 1}),
        Operation::SendReceive({&to_itself, 1}, {&from_itself, 1})}) {
    EXPECT_EQ(ComplaintHere(operation), "") << Name(operation.kind);
  }
}

TEST_F(OperationTest, ARootHasToBeARank) {
  for (const int root : {-1, kRanks}) {
    for (const Operation& operation :
         {Operation::Reduce(buffer_.data(), 1, sum_, root), Operation::Broadcast(buffer_.data(), 1, root),
          Operation::Gather(buffer_.data(), 1, other_.data(), offsets_, root),
          Operation::Scatter(buffer_.data(), offsets_, other_.data(), 1, root)}) {
      EXPECT_EQ(ComplaintHere(operation),
                "root " + std::to_string(root) + " is not a rank; ranks are 0 to 2");
    }
  }
}

TEST_F(OperationTest, ABufferIsNeededForEverythingButNothing) {
  for (const Operation& operation :
       {Operation::Allreduce(nullptr, 1, sum_), Operation::Reduce(nullptr, 1, sum_, kRank),
        Operation::ReduceScatter(nullptr, offsets_, sum_), Operation::Broadcast(nullptr, 1, 0),
        Operation::Allgather(nullptr, offsets_), Operation::Allgather(nullptr, 8, 2, 3),
        Operation::Gather(nullptr, 1, buffer_.data(), offsets_, 0),
        Operation::Gather(buffer_.data(), 1, nullptr, offsets_, kRank),
        Operation::Scatter(buffer_.data(), offsets_, nullptr, 1, 0),
        Operation::Scatter(nullptr, offsets_, buffer_.data(), 1, kRank),
        Operation::AllToAll(nullptr, offsets_, buffer_.data(), offsets_),
        Operation::AllToAll(buffer_.data(), offsets_, nullptr, offsets_)}) {
    EXPECT_THAT(ComplaintHere(operation), HasSubstr(" is NULL")) << Name(operation.kind);
  }
  EXPECT_EQ(ComplaintHere(Operation::Allreduce(buffer_.data(), nullptr, 1, sum_)),
            "the buffer for the result is NULL");
  Operation to_another = Operation::Reduce(buffer_.data(), 1, sum_, 0);
  to_another.in_place = false;
  to_another.receive = nullptr;
  EXPECT_EQ(ComplaintHere(to_another), "") << "only the root gets a result";
}

TEST_F(OperationTest, OffsetsAscendFromZeroForEachRank) {
  const std::vector<std::vector<std::size_t>> invalid{{}, {0, 1, 2}, {1, 2, 3, 4}, {0, 2, 1, 4}};
  for (const std::vector<std::size_t>& offsets : invalid) {
    for (const Operation& operation :
         {Operation::ReduceScatter(buffer_.data(), offsets, sum_),
          Operation::Allgather(buffer_.data(), offsets),
          Operation::Gather(buffer_.data(), 1, other_.data(), offsets, kRank),
          Operation::Scatter(buffer_.data(), offsets, other_.data(), 1, kRank),
          Operation::AllToAll(buffer_.data(), offsets, other_.data(), offsets_),
          Operation::AllToAll(buffer_.data(), offsets_, other_.data(), offsets)}) {
      EXPECT_EQ(ComplaintHere(operation), "expected the 4 offsets of 3 slices, ascending from 0");
    }
  }
}

TEST_F(OperationTest, ARanksOwnSliceIsOneLengthOnBothSides) {
  EXPECT_EQ(ComplaintHere(Operation::Gather(buffer_.data(), 2, other_.data(), offsets_, kRank)),
            "this rank's own slice has 2 bytes, but its count says 1");
  EXPECT_EQ(ComplaintHere(Operation::Scatter(buffer_.data(), offsets_, other_.data(), 2, kRank)),
            "this rank's own slice has 2 bytes, but its count says 1");
  const std::vector<std::size_t> others{0, 2, 4, 8};
  EXPECT_EQ(ComplaintHere(Operation::AllToAll(buffer_.data(), others, other_.data(), offsets_)),
            "this rank's own slice has 2 bytes, but its count says 1");
  EXPECT_EQ(ComplaintHere(Operation::Allgather(buffer_.data(), 8, 4, 3)),
            "the slice [4, 3) is not within 8 bytes");
  EXPECT_EQ(ComplaintHere(Operation::Allgather(buffer_.data(), 8, 4, 9)),
            "the slice [4, 9) is not within 8 bytes");
}

TEST_F(OperationTest, CommunicatorsReduceInPlaceAndComputeNoAverages) {
  EXPECT_EQ(EngineComplaint(Operation::Allreduce(buffer_.data(), other_.data(), 1, sum_), kRank, kRanks), "");
  Operation reduce = Operation::Reduce(buffer_.data(), 1, sum_, 0);
  EXPECT_EQ(EngineComplaint(reduce, kRank, kRanks), "");
  reduce.in_place = false;
  EXPECT_EQ(EngineComplaint(reduce, kRank, kRanks), "it is not in place");
  Operation average = Operation::Allreduce(buffer_.data(), 1, sum_);
  average.average = true;
  EXPECT_EQ(ComplaintHere(average), "");
  EXPECT_EQ(EngineComplaint(average, kRank, kRanks), "an average, which only the APIs compute");
}

TEST_F(OperationTest, WhatMemoryCannotHoldIsRefused) {
  EXPECT_THAT(
      ComplaintHere(Operation::Allreduce(buffer_.data(), std::numeric_limits<std::size_t>::max() / 4, sum_)),
      HasSubstr("elements of 4 bytes are more than memory can hold"));
  const auto nothing = [](const void*, void*, std::size_t, void*) {};
  const Reduction large = Reduction::Custom(nothing, nullptr, std::size_t{1} << 32);
  EXPECT_EQ(ComplaintHere(Operation::Allreduce(buffer_.data(), 1, large)),
            "elements of 4294967296 bytes; the largest have 4294967295");
}

TEST_F(OperationTest, MessagesGoToRanksAndMatchIfARankSendsToItself) {
  const Outbound nowhere{kRanks, buffer_.data(), 1};
  EXPECT_EQ(ComplaintHere(Operation::SendReceive({&nowhere, 1}, {})), "3 is not a rank; ranks are 0 to 2");
  const Inbound from_nowhere{-1, buffer_.data(), 1};
  EXPECT_EQ(ComplaintHere(Operation::SendReceive({}, {&from_nowhere, 1})),
            "-1 is not a rank; ranks are 0 to 2");
  const Outbound to_itself{kRank, buffer_.data(), 4};
  EXPECT_THAT(ComplaintHere(Operation::SendReceive({&to_itself, 1}, {})), HasSubstr("to itself"));
  const Inbound shorter{kRank, other_.data(), 3};
  EXPECT_THAT(ComplaintHere(Operation::SendReceive({&to_itself, 1}, {&shorter, 1})), HasSubstr("to itself"));
}

TEST_F(OperationTest, BytesAreThoseOfThisRanksSide) {
  const Outbound sends[] = {{2, buffer_.data(), 4}, {kRank, buffer_.data(), 8}};
  const Inbound receives[] = {{0, other_.data(), 16}, {kRank, other_.data(), 8}};
  EXPECT_EQ(BytesOf(Operation::Allreduce(buffer_.data(), 3, sum_), kRank), 12);
  EXPECT_EQ(BytesOf(Operation::ReduceScatter(buffer_.data(), offsets_, sum_), kRank), 32);
  EXPECT_EQ(BytesOf(Operation::Allgather(buffer_.data(), offsets_), kRank), 8);
  EXPECT_EQ(BytesOf(Operation::Allgather(buffer_.data(), 8, 2, 3), kRank), 8);
  EXPECT_EQ(BytesOf(Operation::Gather(buffer_.data(), 1, other_.data(), offsets_, kRank), kRank), 8);
  EXPECT_EQ(BytesOf(Operation::Gather(buffer_.data(), 1, other_.data(), offsets_, 0), kRank), 1);
  EXPECT_EQ(BytesOf(Operation::SendReceive(sends, receives), kRank), 20) << "without messages to itself";
  EXPECT_EQ(BytesOf(Operation::Barrier(), kRank), 0);
}

TEST_F(OperationTest, CopiesWhatARankSendsToItself) {
  const std::array<char, 8> from{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};
  std::array<char, 8> to{};
  const std::vector<std::size_t> shifted{0, 4, 5, 8};
  CopyOwnSlice(Operation::AllToAll(from.data(), offsets_, to.data(), shifted), kRank);
  EXPECT_THAT(to, ElementsAre(0, 0, 0, 0, 'c', 0, 0, 0));
  to = {};
  CopyOwnSlice(Operation::Gather(from.data(), 1, to.data(), offsets_, kRank), kRank);
  EXPECT_THAT(to, ElementsAre(0, 0, 'a', 0, 0, 0, 0, 0));
  to = {};
  CopyOwnSlice(Operation::Scatter(from.data(), offsets_, to.data(), 1, kRank), kRank);
  EXPECT_THAT(to, ElementsAre('c', 0, 0, 0, 0, 0, 0, 0));
  to = {};
  Operation allgather = Operation::Allgather(to.data(), offsets_);
  allgather.send = from.data();
  CopyOwnSlice(allgather, kRank);
  EXPECT_THAT(to, ElementsAre(0, 0, 'a', 0, 0, 0, 0, 0));
  to = {};
  CopyOwnSlice(Operation::Gather(from.data(), 1, nullptr, {}, 0), kRank);
  EXPECT_THAT(to, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0)) << "not at the root";
  const std::array<Outbound, 3> sends{{{kRank, &from[0], 1}, {0, &from[1], 1}, {kRank, &from[2], 2}}};
  const std::array<Inbound, 3> receives{{{0, &to[0], 1}, {kRank, &to[1], 1}, {kRank, &to[2], 2}}};
  CopyOwnSlice(Operation::SendReceive(sends, receives), kRank);
  EXPECT_THAT(to, ElementsAre(0, 'a', 'c', 'd', 0, 0, 0, 0));
}

}  // namespace
}  // namespace warren
