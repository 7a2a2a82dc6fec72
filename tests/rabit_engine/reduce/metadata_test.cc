#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rabit_engine/reduce/reference.h"

namespace warren {
namespace {

TEST(Metadata, SizesAreThoseOfTheTypesThatRabitSends) {
  for (int code = 0; code < kNumDataTypes; ++code) {
    const auto type = static_cast<DataType>(code);
    EXPECT_EQ(SizeOf(type), reference::WithType(type, [](auto value) { return sizeof(value); }))
        << Name(type);
  }
  EXPECT_THROW(SizeOf(static_cast<DataType>(12)), Misuse);
}

TEST(Metadata, EveryTypeAndOperationHasAName) {
  EXPECT_EQ(Name(DataType::kFloat), "float");
  EXPECT_EQ(Name(DataType::kULongLong), "unsigned long long");
  EXPECT_EQ(Name(DataType::kBFloat16), "bfloat16");
  EXPECT_EQ(Name(ReduceOp::kMax), "max");
  EXPECT_EQ(Name(ReduceOp::kBitXor), "bitwise xor");
  EXPECT_EQ(Name(static_cast<DataType>(12)), "unknown type");
  EXPECT_EQ(Name(static_cast<ReduceOp>(7)), "unknown operation");
}

TEST(Metadata, BitwiseOperationsAreDefinedForIntegersOnly) {
  EXPECT_TRUE(IsDefined(DataType::kChar, ReduceOp::kBitOr));
  EXPECT_TRUE(IsDefined(DataType::kULongLong, ReduceOp::kBitXor));
  EXPECT_FALSE(IsDefined(DataType::kFloat, ReduceOp::kBitOr));
  EXPECT_FALSE(IsDefined(DataType::kBFloat16, ReduceOp::kBitAnd));
  EXPECT_TRUE(IsDefined(DataType::kFloat16, ReduceOp::kProduct));
  EXPECT_FALSE(IsDefined(static_cast<DataType>(12), ReduceOp::kSum));
  EXPECT_FALSE(IsDefined(DataType::kInt, static_cast<ReduceOp>(7)));
}

TEST(Metadata, AReductionThatDoesNotExistIsMisuseAndTheMessageSaysWhich) {
  EXPECT_THAT([] { Reduction::Typed(DataType::kDouble, ReduceOp::kBitOr); },
              testing::ThrowsMessage<Misuse>(
                  testing::AllOf(testing::HasSubstr("bitwise or"), testing::HasSubstr("double"))));
}

TEST(Metadata, OnlyIntegersAreFreeToBeCombinedInAnyOrder) {
  EXPECT_FALSE(Reduction::Typed(DataType::kInt, ReduceOp::kSum).order_matters());
  EXPECT_FALSE(Reduction::Typed(DataType::kUChar, ReduceOp::kMax).order_matters());
  EXPECT_TRUE(Reduction::Typed(DataType::kDouble, ReduceOp::kSum).order_matters());
  EXPECT_TRUE(Reduction::Typed(DataType::kFloat, ReduceOp::kMax).order_matters());
  EXPECT_TRUE(Reduction::Custom([](const void*, void*, std::size_t, void*) {}, nullptr, 4).order_matters());
}

TEST(Metadata, OnlySumsAndProductsOfSixteenBitFloatsRoundAndAreFloatsInside) {
  for (const auto& [type, operation] : reference::DefinedPairs()) {
    const Reduction reduction = Reduction::Typed(type, operation);
    const bool rounds =
        reference::IsSixteenBits(type) && (operation == ReduceOp::kSum || operation == ReduceOp::kProduct);
    EXPECT_EQ(reduction.rounds(), rounds) << Name(type) << ' ' << Name(operation);
    if (!rounds) continue;
    const Reduction wide = reduction.Wide();
    EXPECT_EQ(wide.type(), DataType::kFloat);
    EXPECT_EQ(wide.operation(), operation);
    EXPECT_EQ(wide.element_bytes(), sizeof(float));
    EXPECT_FALSE(wide.rounds());
  }
  EXPECT_FALSE(Reduction::Custom([](const void*, void*, std::size_t, void*) {}, nullptr, 2).rounds());
}

TEST(Metadata, AReductionKnowsWhatItIs) {
  const Reduction typed = Reduction::Typed(DataType::kBFloat16, ReduceOp::kMin);
  EXPECT_EQ(typed.type(), DataType::kBFloat16);
  EXPECT_EQ(typed.operation(), ReduceOp::kMin);
  EXPECT_EQ(typed.element_bytes(), 2u);
  EXPECT_FALSE(typed.is_custom());
  const Reduction custom = Reduction::Custom([](const void*, void*, std::size_t, void*) {}, nullptr, 24);
  EXPECT_EQ(custom.element_bytes(), 24u);
  EXPECT_TRUE(custom.is_custom());
}

}  // namespace
}  // namespace warren
