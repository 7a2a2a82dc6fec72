// rabit/half.h, compared with a reference implementation written from the formats' definitions.
#include <gtest/gtest.h>
#include <rabit/half.h>
#include <rabit/rabit.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/rabit_engine/reduce/reference.h"

namespace {

namespace half = rabit::engine::half;
using warren::reference::Brain;
using warren::reference::Narrowed;

template <typename Half, typename Reference>
void CheckEveryPattern() {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const Half value = Half::FromBits(pattern);
    EXPECT_EQ(value.bits(), pattern);
    const float wide = value;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(wide), std::bit_cast<std::uint32_t>(Widened(Reference{pattern})))
        << bits;
    if (!std::isnan(wide)) {
      EXPECT_EQ(Half(wide).bits(), pattern);
    }
  }
}

template <typename Half, typename Reference>
void CheckRounding() {
  const auto check = [](std::uint32_t bits) {
    const auto value = std::bit_cast<float>(bits);
    ASSERT_EQ(Half(value).bits(), Narrowed<Reference>(value).bits) << std::hex << bits;
  };
  // All signs and exponents, with fractions at and next to the ties of both formats, and a few others.
  for (std::uint32_t top = 0; top < 0x10000; ++top) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x7fffu,
                                    0x8000u, 0x8001u, 0xe000u, 0xffffu}) {
      check(top << 16 | low);
    }
  }
}

TEST(Half, EveryPatternIsItsNumberAndComesBack) {
  CheckEveryPattern<rabit::Float16, warren::reference::Half>();
  CheckEveryPattern<rabit::BFloat16, Brain>();
}

TEST(Half, FloatsAreRoundedToNearestEvenAndNanStayQuiet) {
  CheckRounding<rabit::Float16, warren::reference::Half>();
  CheckRounding<rabit::BFloat16, Brain>();
}

TEST(Half, TypesAreToldFromOthersOfTwoBytes) {
  struct TwoBytes {
    char bytes[2];
  };
  enum class Enumeration : std::uint16_t { kOne };
  static_assert(half::IsFloat16<rabit::Float16>::value && !half::IsBFloat16<rabit::Float16>::value);
  static_assert(half::IsBFloat16<rabit::BFloat16>::value && !half::IsFloat16<rabit::BFloat16>::value);
  static_assert(!half::IsCompilers<short>::value && !half::IsCompilers<char16_t>::value &&
                !half::IsCompilers<Enumeration>::value && !half::IsCompilers<TwoBytes>::value &&
                !half::IsCompilers<float>::value && !half::IsCompilers<char[2]>::value);
#if defined(__STDCPP_FLOAT16_T__) || \
    (defined(__clang__) && defined(__FLT16_MANT_DIG__) && __clang_major__ >= 15)
  static_assert(half::IsFloat16<_Float16>::value && !half::IsBFloat16<_Float16>::value);
#endif
}

}  // namespace
