#include "rabit_engine/reduce/identity.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "tests/rabit_engine/reduce/reference.h"

namespace warren {
namespace {

bool IsFloat(DataType type) {
  return !IsDefined(type, ReduceOp::kBitOr);
}

/// Whether the bytes are those of a NaN.
bool IsNan(const std::byte* bytes, DataType type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, SizeOf(type));
  const auto is_nan = [&](std::uint64_t exponent, std::uint64_t mantissa) {
    return (bits & exponent) == exponent && (bits & mantissa) != 0;
  };
  if (type == DataType::kDouble) return is_nan(0x7ff0000000000000, 0x000fffffffffffff);
  if (type == DataType::kFloat) return is_nan(0x7f800000, 0x007fffff);
  if (type == DataType::kFloat16) return is_nan(0x7c00, 0x03ff);
  return is_nan(0x7f80, 0x007f);
}

TEST(Identity, ChangesNoBitOnEitherSide) {
  std::mt19937_64 random(1);
  constexpr std::size_t kCount = 10'000;
  for (const auto& [type, operation] : reference::DefinedPairs()) {
    const std::size_t size = SizeOf(type);
    std::vector<std::byte> values(kCount * size);
    for (std::byte& byte : values) byte = static_cast<std::byte>(random());
    std::fill(values.begin(), values.begin() + 8, std::byte{0});
    // The first element becomes a negative zero.
    if (IsFloat(type)) values[size - 1] = std::byte{0x80};
    std::vector<std::byte> identity(values.size() + 1);
    FillWithIdentity(identity.data() + 1, kCount, type, operation);
    for (const bool is_left : {true, false}) {
      std::vector<std::byte> result(values.size());
      const void* left = is_left ? static_cast<const void*>(identity.data() + 1) : values.data();
      const void* right = is_left ? static_cast<const void*>(values.data()) : identity.data() + 1;
      Reduction::Typed(type, operation).Combine(result.data(), left, right, kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        if (IsFloat(type) && IsNan(values.data() + i * size, type))
          continue;  // a NaN becomes quiet or is replaced by an infinity
        ASSERT_EQ(std::memcmp(result.data() + i * size, values.data() + i * size, size), 0)
            << Name(type) << " " << Name(operation) << " " << i << " " << is_left;
      }
    }
  }
}

}  // namespace
}  // namespace warren
