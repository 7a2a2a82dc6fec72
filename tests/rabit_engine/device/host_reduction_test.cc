#include "rabit_engine/device/host_reduction.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace warren::device {
namespace {

constexpr Type kFloat8[] = {Type::kFloat8E4M3, Type::kFloat8E5M2};

TEST(Float8, HasTheNumbersOfItsSpecification) {
  EXPECT_EQ(FromFloat8(Type::kFloat8E4M3, 0x38), 1.0F);
  EXPECT_EQ(FromFloat8(Type::kFloat8E4M3, 0x7e), 448.0F);
  EXPECT_EQ(FromFloat8(Type::kFloat8E4M3, 0x01), 0x1p-9F);
  EXPECT_EQ(FromFloat8(Type::kFloat8E4M3, 0xb8), -1.0F);
  EXPECT_TRUE(std::isnan(FromFloat8(Type::kFloat8E4M3, 0x7f)));
  EXPECT_EQ(FromFloat8(Type::kFloat8E5M2, 0x3c), 1.0F);
  EXPECT_EQ(FromFloat8(Type::kFloat8E5M2, 0x7b), 57344.0F);
  EXPECT_EQ(FromFloat8(Type::kFloat8E5M2, 0x01), 0x1p-16F);
  EXPECT_TRUE(std::isinf(FromFloat8(Type::kFloat8E5M2, 0x7c)));
  EXPECT_TRUE(std::isnan(FromFloat8(Type::kFloat8E5M2, 0x7d)));
}

TEST(Float8, EveryNumberComesBackFromAFloat) {
  for (const Type type : kFloat8) {
    for (int bits = 0; bits < 256; ++bits) {
      const float value = FromFloat8(type, static_cast<unsigned char>(bits));
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(ToFloat8(type, value), bits) << Name(type);
    }
  }
}

/// The finite float8 nearest to `value`, found by exhaustive search. On a tie, the float8 with a last bit of
/// 0.
unsigned char Nearest(Type type, float value) {
  int best = -1;
  double best_distance = std::numeric_limits<double>::infinity();
  for (int bits = 0; bits < 128; ++bits) {
    const double candidate = FromFloat8(type, static_cast<unsigned char>(bits));
    if (!std::isfinite(candidate)) continue;
    const double distance = std::fabs(candidate - std::fabs(static_cast<double>(value)));
    if (distance < best_distance || (distance == best_distance && bits % 2 == 0)) {
      best = bits;
      best_distance = distance;
    }
  }
  return static_cast<unsigned char>(best | (std::signbit(value) ? 0x80 : 0));
}

TEST(Float8, RoundsToTheNearestAndStaysFinite) {
  for (const Type type : kFloat8) {
    for (std::uint32_t bits = 0x3000'0000; bits < 0x4900'0000; bits += 0x1'2345) {
      for (const std::uint32_t sign : {0U, 0x8000'0000U}) {
        const auto value = std::bit_cast<float>(bits | sign);
        ASSERT_EQ(ToFloat8(type, value), Nearest(type, value)) << Name(type) << " of " << value;
      }
    }
    EXPECT_TRUE(std::isfinite(FromFloat8(type, ToFloat8(type, std::numeric_limits<float>::infinity()))));
    EXPECT_TRUE(std::isnan(FromFloat8(type, ToFloat8(type, std::nanf("")))));
    EXPECT_EQ(ToFloat8(type, 0.0F), 0);
    EXPECT_EQ(ToFloat8(type, -0.0F), 0x80);
  }
}

TEST(HostReduction, KnowsEveryTypeAndOperation) {
  for (int type = 0; type < kNumTypes; ++type) {
    for (int operation = 0; operation < kNumReduceOps; ++operation) {
      const Reduction reduction = HostReduction(static_cast<Type>(type), static_cast<ReduceOp>(operation));
      EXPECT_EQ(reduction.element_bytes(), SizeOf(static_cast<Type>(type)));
    }
  }
}

TEST(HostReduction, CombinesFloat8) {
  unsigned char left = ToFloat8(Type::kFloat8E4M3, 3.0F);
  const unsigned char right = ToFloat8(Type::kFloat8E4M3, 2.5F);
  HostReduction(Type::kFloat8E4M3, ReduceOp::kSum).Combine(&left, &left, &right, 1);
  EXPECT_EQ(FromFloat8(Type::kFloat8E4M3, left), 5.5F);
  HostReduction(Type::kFloat8E4M3, ReduceOp::kMin).Combine(&left, &left, &right, 1);
  EXPECT_EQ(FromFloat8(Type::kFloat8E4M3, left), 2.5F);
}

TEST(Divide, RoundsWholeNumbersTowardsZeroForAnyNumberOfRanks) {
  std::vector<std::int8_t> bytes = {-7, 7, 127, -128};
  Divide(Type::kInt8, bytes.data(), bytes.size(), 2);
  EXPECT_EQ(bytes, (std::vector<std::int8_t>{-3, 3, 63, -64}));
  std::vector<std::int8_t> many = {100, -100};
  Divide(Type::kInt8, many.data(), many.size(), 200);
  EXPECT_EQ(many, (std::vector<std::int8_t>{0, 0}));
  std::vector<std::uint64_t> large = {UINT64_MAX};
  Divide(Type::kUint64, large.data(), 1, 3);
  EXPECT_EQ(large.front(), UINT64_MAX / 3);
}

TEST(Divide, RoundsShortFloatsToTheNearest) {
  // 1 / 3 is 0x3555 in binary16 and 0x3eab in bfloat16. Division by 1 leaves the smallest subnormal, 65504
  // and infinity unchanged.
  std::vector<std::uint16_t> halves = {0x3c00, 0x0001, 0x7bff, 0x7c00};
  Divide(Type::kFloat16, halves.data(), 1, 3);
  Divide(Type::kFloat16, halves.data() + 1, 3, 1);
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{0x3555, 0x0001, 0x7bff, 0x7c00}));
  std::uint16_t brain = 0x3f80;
  Divide(Type::kBFloat16, &brain, 1, 3);
  EXPECT_EQ(brain, 0x3eab);
}

}  // namespace
}  // namespace warren::device
