// Positions of values in sorted lists are those of std::upper_bound, however the values are distributed.
#include "examples/histgbt/value_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace warren::histgbt {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();

/// Checks the positions of all values, of the next floats below and above them, and of other values between
/// and beyond them.
void ExpectUpperBounds(const std::vector<std::vector<float>>& lists) {
  ValueIndex index;
  for (const std::vector<float>& sorted : lists) index.Add(sorted);
  for (std::size_t feature = 0; feature < lists.size(); ++feature) {
    const std::vector<float>& sorted = lists[feature];
    std::vector<float> asked = {-kMost, -1, 0, 1, kMost, std::numeric_limits<float>::denorm_min()};
    for (const float value : sorted) {
      asked.insert(asked.end(), {value, std::nextafter(value, -kMost), std::nextafter(value, kMost)});
      asked.push_back(value / 2 + sorted.front() / 2);
    }
    for (const float value : asked) {
      const auto expected =
          static_cast<std::uint32_t>(std::upper_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
      ASSERT_EQ(CountUpTo(sorted, value), expected) << sorted.size() << " values, " << value;
      ASSERT_EQ(index.CountUpTo(feature, value), expected)
          << "feature " << feature << ", " << sorted.size() << " values, " << value;
    }
  }
}

template <typename Draw>
std::vector<float> Sorted(std::size_t size, Draw&& draw) {
  std::vector<float> values;
  while (values.size() < size) values.push_back(draw());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

TEST(ValueIndex, OfAllSizes) {
  std::vector<std::vector<float>> lists;
  for (std::size_t size = 0; size < 70; ++size) {
    std::vector<float> sorted;
    for (std::size_t i = 0; i < size; ++i) sorted.push_back(static_cast<float>(i));
    lists.push_back(sorted);
  }
  ExpectUpperBounds(lists);
}

TEST(ValueIndex, EvenAndUneven) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> even(-3, 5);
  std::lognormal_distribution<float> skew(0, 8);
  std::cauchy_distribution<float> wild(0, 1e-3F);
  ExpectUpperBounds({Sorted(2000, [&] { return even(random); }), Sorted(2000, [&] { return skew(random); }),
                     Sorted(2000, [&] { return std::clamp(wild(random), -kMost, kMost); })});
}

/// In these lists, the differences of values overflow, or are too small for the steps of ValueIndex's grid.
TEST(ValueIndex, TheEndsOfWhatAFloatHolds) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<float> large(-1, 1);
  const float least = std::numeric_limits<float>::denorm_min();
  std::vector<float> tiny;
  std::vector<float> near_one;
  for (int i = -20; i < 20; ++i) tiny.push_back(static_cast<float>(i) * least);
  for (float value = 1; near_one.size() < 40; value = std::nextafter(value, kMost)) near_one.push_back(value);
  ExpectUpperBounds({Sorted(500, [&] { return large(random) * kMost; }),
                     tiny,
                     near_one,
                     {-kMost, -kMost / 2, -1, -least, 0, least, 1, 2, 3, kMost / 2, kMost}});
}

}  // namespace
}  // namespace warren::histgbt
