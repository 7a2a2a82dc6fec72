// Reductions of two operands: every kernel table, type, operation, length, alignment and aliasing.
#include "rabit_engine/reduce/kernels.h"

#include <gtest/gtest.h>

#include "tests/rabit_engine/reduce/reference.h"

namespace warren {
namespace {

using reference::Bytes;

const std::byte kGuard{0xa5};

/// A copy of some values that begins `misalignment` bytes after a 64-byte boundary, with guard bytes around
/// it.
class Buffer {
 public:
  Buffer(const Bytes& values, std::size_t misalignment) : bytes_(values.size()) {
    memory_.assign(values.size() + 256, kGuard);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = 64 + (64 - address % 64) % 64 + misalignment;
    if (!values.empty()) std::memcpy(data(), values.data(), values.size());
  }
  std::byte* data() { return memory_.data() + begin_; }
  bool GuardsAreWhole() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < begin_ || i >= begin_ + bytes_) && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  std::size_t bytes_;
  std::size_t begin_;
  Bytes memory_;
};

/// All 65,536 bit patterns, in ascending order.
Bytes EverySixteenBits() {
  Bytes all(2 * 65536);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) std::memcpy(&all[2 * bits], &bits, 2);
  return all;
}

constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, 4097};

TEST(Kernels, EveryTableGivesTheReferencesBitsWhateverTheLengthAlignmentAndAliasing) {
  for (const auto& [type, operation] : reference::DefinedPairs()) {
    for (const std::size_t count : kCounts) {
      const Bytes left = reference::Values(type, count, 2 * count);
      const Bytes right = reference::Values(type, count, 2 * count + 1);
      const Bytes wanted = reference::Combine(type, operation, left, right);
      const Bytes wanted_of_same = reference::Combine(type, operation, left, left);
      for (const KernelTable* table : reference::Tables()) {
        const Reduction reduction = Reduction::Typed(type, operation, *table);
        for (const std::size_t misalignment : {0, 1, 4, 63}) {
          SCOPED_TRACE(testing::Message() << reference::Describe(*table, type, operation) << ", " << count
                                          << " elements, " << misalignment << " bytes off");
          Buffer a(left, misalignment);
          Buffer b(right, 64 - misalignment - 1);
          Buffer out(Bytes(left.size()), misalignment / 2);
          reduction.Combine(out.data(), a.data(), b.data(), count);
          ASSERT_EQ(reference::Difference(type, out.data(), wanted), "");
          ASSERT_EQ(reference::Difference(type, a.data(), left), "") << "the left operand changed";
          ASSERT_EQ(reference::Difference(type, b.data(), right), "") << "the right operand changed";

          Buffer into_left(left, misalignment);
          reduction.Combine(into_left.data(), into_left.data(), b.data(), count);
          ASSERT_EQ(reference::Difference(type, into_left.data(), wanted), "") << "out is left";

          reduction.Combine(b.data(), a.data(), b.data(), count);
          ASSERT_EQ(reference::Difference(type, b.data(), wanted), "") << "out is right";

          reduction.Combine(out.data(), a.data(), a.data(), count);
          ASSERT_EQ(reference::Difference(type, out.data(), wanted_of_same), "") << "left is right";
          reduction.Combine(a.data(), a.data(), a.data(), count);
          ASSERT_EQ(reference::Difference(type, a.data(), wanted_of_same), "") << "all are the same";

          ASSERT_TRUE(a.GuardsAreWhole() && b.GuardsAreWhole() && out.GuardsAreWhole() &&
                      into_left.GuardsAreWhole());
        }
      }
    }
  }
}

TEST(Kernels, EverySixteenBitPatternGoesThroughUnchangedButForSignallingNan) {
  const Bytes all = EverySixteenBits();
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    const Bytes wanted = reference::Combine(type, ReduceOp::kMax, all, all);
    for (const KernelTable* table : reference::Tables()) {
      Bytes out(all.size());
      Reduction::Typed(type, ReduceOp::kMax, *table).Combine(out.data(), all.data(), all.data(), 65536);
      EXPECT_EQ(reference::Difference(type, out.data(), wanted), "") << table->name << " " << Name(type);
    }
  }
}

TEST(Kernels, SumsAndProductsOfSixteenBitFloatsAreRoundedToNearestEven) {
  // Combines each bit pattern with six others, so that every kind of tie, carry, underflow and overflow
  // occurs.
  const Bytes left = EverySixteenBits();
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    for (const ReduceOp operation : {ReduceOp::kSum, ReduceOp::kProduct}) {
      for (std::uint32_t round = 0; round < 6; ++round) {
        const Bytes right = reference::Values(type, 65536, round);
        const Bytes wanted = reference::Combine(type, operation, left, right);
        for (const KernelTable* table : reference::Tables()) {
          Bytes out(left.size());
          Reduction::Typed(type, operation, *table).Combine(out.data(), left.data(), right.data(), 65536);
          EXPECT_EQ(reference::Difference(type, out.data(), wanted), "")
              << reference::Describe(*table, type, operation);
        }
      }
    }
  }
}

TEST(Kernels, SixteenBitFloatsBecomeFloatsAndBackInEveryTableAlike) {
  const Bytes all = EverySixteenBits();
  const Bytes floats = reference::Values(DataType::kFloat, 10'001, 1);
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    for (const KernelTable* table : reference::Tables()) {
      const Reduction sum = Reduction::Typed(type, ReduceOp::kSum, *table);
      for (const std::size_t count : {std::size_t{65536}, std::size_t{65536 - 5}, std::size_t{3}}) {
        Bytes wide(4 * count + 1, std::byte{0x5a});
        sum.Widen(wide.data(), all.data(), count);
        const Bytes wanted = reference::Widened(type, Bytes(all.begin(), all.begin() + 2 * count));
        ASSERT_EQ(reference::Difference(DataType::kFloat, wide.data(), wanted), "") << table->name;
        ASSERT_EQ(wide.back(), std::byte{0x5a});
      }
      Bytes narrow(floats.size() / 2);
      sum.Narrow(narrow.data(), floats.data(), 10'001);
      EXPECT_EQ(reference::Difference(type, narrow.data(), reference::Narrowed(type, floats)), "")
          << table->name << ' ' << Name(type);
    }
  }
}

TEST(Kernels, TheSumOfTwoNanIsTheLeftOneMadeQuiet) {
  const std::uint32_t left = 0x7f80'1234;
  const std::uint32_t right = 0xffc0'4321;
  for (const KernelTable* table : reference::Tables()) {
    std::uint32_t out = 0;
    Reduction::Typed(DataType::kFloat, ReduceOp::kSum, *table).Combine(&out, &left, &right, 1);
    EXPECT_EQ(out, 0x7fc0'1234u) << table->name;
  }
}

TEST(Kernels, MaxAndMinKeepTheLeftOperandUnlessTheRightOneIsTrulyBeyondIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float left[] = {nan, 1, -0.0f, 0.0f};
  const float right[] = {1, nan, 0.0f, -0.0f};
  for (const KernelTable* table : reference::Tables()) {
    for (const ReduceOp operation : {ReduceOp::kMax, ReduceOp::kMin}) {
      float out[4];
      Reduction::Typed(DataType::kFloat, operation, *table).Combine(out, left, right, 4);
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(left[i]))
            << table->name << " " << Name(operation) << ", element " << i;
      }
    }
  }
}

TEST(Kernels, CharIsSignedAndIntegersWrap) {
  const signed char left[] = {-1, 127, 100};
  const signed char right[] = {1, 1, 3};
  for (const KernelTable* table : reference::Tables()) {
    signed char out[3];
    Reduction::Typed(DataType::kChar, ReduceOp::kMax, *table).Combine(out, left, right, 3);
    EXPECT_EQ(out[0], 1) << table->name;
    Reduction::Typed(DataType::kChar, ReduceOp::kSum, *table).Combine(out, left, right, 3);
    EXPECT_EQ(out[1], -128) << table->name;
    Reduction::Typed(DataType::kChar, ReduceOp::kProduct, *table).Combine(out, left, right, 3);
    EXPECT_EQ(out[2], 44) << table->name;
  }
}

TEST(Kernels, TheTableInUseIsTheWidestOfThisCpu) {
  EXPECT_EQ(&BestKernels(), reference::Tables().back());
}

}  // namespace
}  // namespace warren
