#include "rabit_engine/transport/word_packing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace warren {
namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// The code of `data`, followed by kUnpackSlack bytes, whose values must not affect the result of
/// UnpackWords.
struct Code {
  explicit Code(const Bytes& data) {
    // The address sanitizer detects writes beyond the capacity.
    Bytes packed(PackingCapacity(data.size()));
    length = PackWords(data, packed.data());
    packed.resize(length);
    bytes = std::move(packed);
    bytes.resize(length + kUnpackSlack, std::byte{0xff});
  }
  std::span<const std::byte> view() const { return {bytes.data(), length}; }

  Bytes bytes;
  std::size_t length;
};

void ExpectRoundTrip(const Bytes& data) {
  const Code code(data);
  Bytes back(data.size(), std::byte{0x5a});
  ASSERT_TRUE(UnpackWords(code.view(), back));
  EXPECT_EQ(back, data);
}

/// Random words. A word is zero with probability `zeros`; otherwise its high `kept_bits` bits are random, and
/// the others are zero.
std::vector<std::uint64_t> Words(std::size_t count, double zeros, int kept_bits, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution is_zero(zeros);
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t& word : words)
    word = is_zero(random) ? 0 : random() >> (64 - kept_bits) << (64 - kept_bits);
  return words;
}

TEST(WordPacking, GivesBackWordsOfEveryKindAndLength) {
  for (std::size_t count = 0; count < 200; ++count) {
    for (const double zeros : {0.0, 0.5, 0.97, 1.0}) {
      for (const int bits : {1, 8, 9, 35, 63, 64}) ExpectRoundTrip(BytesOf(Words(count, zeros, bits, count)));
    }
  }
}

TEST(WordPacking, GivesBackBytesThatAreNoWholeWords) {
  for (std::size_t bytes = 0; bytes < 1100; bytes += 3) {
    Bytes data(bytes);
    for (std::size_t i = 0; i < bytes; i += 5) data[i] = static_cast<std::byte>(i);
    ExpectRoundTrip(data);
  }
}

TEST(WordPacking, KeepsEachBitOfUnusualNumbers) {
  const double infinity = std::numeric_limits<double>::infinity();
  ExpectRoundTrip(
      BytesOf<double>({0.0, -0.0, infinity, -infinity, std::nan("5"), -std::nan(""),
                       std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()}));
  ExpectRoundTrip(BytesOf<std::uint64_t>({1, 0x8000000000000000, 0x00ff00ff00ff0000, ~std::uint64_t{0}}));
}

TEST(WordPacking, LeavesOutEmptyBinsAndZeroBytes) {
  constexpr std::size_t kCount = 6400;
  const auto share = [](const Bytes& data) {
    return static_cast<double>(Code(data).length) / static_cast<double>(data.size());
  };
  EXPECT_EQ(Code(BytesOf(std::vector<double>(kCount, 0.0))).length, kCount / 64 * 8);
  // Counts up to 255 have a sign, 11 bits of exponent and at most 7 of mantissa: three bytes. Floats have 12
  // and 23: five.
  std::vector<double> counts(kCount);
  std::vector<double> floats(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    counts[i] = static_cast<double>(i % 256);
    floats[i] = static_cast<float>(std::sin(i));
  }
  EXPECT_LT(share(BytesOf(counts)), 0.45);
  EXPECT_LT(share(BytesOf(floats)), 0.71);
  // Random bits cannot be packed; the code is not much longer.
  EXPECT_LT(share(BytesOf(Words(kCount, 0, 64, 1))), 1.08);
}

TEST(WordPacking, EstimatesTheLengthOfTheCode) {
  for (const double zeros : {0.0, 0.3, 0.6, 0.9}) {
    for (const int bits : {16, 40, 64}) {
      const Bytes data = BytesOf(Words(8192, zeros, bits, 7));
      const double share = static_cast<double>(Code(data).length) / static_cast<double>(data.size());
      EXPECT_NEAR(EstimatePackedShare(data), share, 0.12) << zeros << " " << bits;
    }
  }
  EXPECT_EQ(EstimatePackedShare(Bytes(15)), 1);
}

TEST(WordPacking, RefusesWhatIsNoCode) {
  const Bytes data = BytesOf(Words(100, 0.5, 40, 3));
  const Code code(data);
  const auto accepts = [&](std::size_t length, std::size_t bytes) {
    Bytes back(bytes);
    return UnpackWords({code.bytes.data(), length}, back);
  };
  EXPECT_TRUE(accepts(code.length, data.size()));
  for (std::size_t length = 0; length < code.length; ++length)
    EXPECT_FALSE(accepts(length, data.size())) << length;
  EXPECT_FALSE(accepts(code.length + 1, data.size()));
  for (const std::size_t bytes : {0, 8, 512, 1600}) EXPECT_FALSE(accepts(code.length, bytes)) << bytes;
}

TEST(WordPacking, NeverReadsOrWritesOutsideWhateverTheCode) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20'000; ++round) {
    // The address sanitizer detects accesses beyond the ends of `code` and `data`.
    Bytes code(random() % 700 + kUnpackSlack, std::byte{0xff});
    const std::size_t length = code.size() - kUnpackSlack;
    for (std::size_t i = 0; i < length; ++i)
      code[i] = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    // In half of the rounds, the last 8 bytes are all ones. If a block begins there, it claims that all its
    // words are nonzero.
    if (round % 2 == 0 && length >= 8)
      std::fill_n(code.begin() + static_cast<std::ptrdiff_t>(length - 8), 8, std::byte{0xff});
    Bytes data(round % 4 == 0 ? (length / 8) * 512 : random() % 1500);
    UnpackWords({code.data(), length}, data);
  }
}

}  // namespace
}  // namespace warren
