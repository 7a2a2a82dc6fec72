// Random numbers and words for tests that write random tables as text.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>

namespace warren::data {

class RandomTables : public testing::Test {
 protected:
  std::uint64_t Below(std::uint64_t count) {
    return std::uniform_int_distribution<std::uint64_t>(0, count - 1)(random_);
  }
  template <std::size_t N>
  const char* OneOf(const char* const (&words)[N]) {
    return words[Below(N)];
  }
  char OneOf(std::string_view characters) { return characters[Below(characters.size())]; }
  /// Any float except the infinities and NaN.
  float AnyFloat() {
    for (;;) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random_()));
      if (std::isfinite(value)) return value;
    }
  }

  std::mt19937_64 random_{20240501};
};

}  // namespace warren::data
