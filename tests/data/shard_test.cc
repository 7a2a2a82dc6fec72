// The division of a data set's bytes into parts and pieces, and the order of shuffled pieces.
#include "data/source/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace warren::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Input File(std::uint64_t size) {
  return {.path = "file", .container = Container::kPlain, .divisible = true, .size = size};
}
Input Whole(std::uint64_t size) {
  return {.path = "whole", .container = Container::kGzip, .divisible = false, .size = size};
}

TEST(Cut, OnePartHasEverything) {
  const std::vector<Input> inputs = {File(10), Whole(7), File(0), File(3)};
  EXPECT_THAT(Cut(inputs, {0, 1}), ElementsAre(Range{0, 0, 10}, Range{1, 0, 7}, Range{3, 0, 3}));
}

TEST(Cut, PartsOfAFileHaveEqualBytesAndTheRowAtTheCutIsBeforeIt) {
  const std::vector<Input> inputs = {File(100)};
  EXPECT_THAT(Cut(inputs, {0, 4}), ElementsAre(Range{0, 0, 26}));
  EXPECT_THAT(Cut(inputs, {3, 4}), ElementsAre(Range{0, 76, 100}));
}

TEST(Cut, APartGoesOverTheEndOfAFile) {
  const std::vector<Input> inputs = {File(10), File(10), File(10)};
  EXPECT_THAT(Cut(inputs, {0, 2}), ElementsAre(Range{0, 0, 10}, Range{1, 0, 6}));
  EXPECT_THAT(Cut(inputs, {1, 2}), ElementsAre(Range{1, 6, 10}, Range{2, 0, 10}));
}

TEST(Cut, WhatCannotBeDividedIsThePartsInWhichItBegins) {
  const std::vector<Input> inputs = {Whole(10), Whole(10), Whole(10)};
  EXPECT_THAT(Cut(inputs, {0, 2}), ElementsAre(Range{0, 0, 10}, Range{1, 0, 10}));
  EXPECT_THAT(Cut(inputs, {1, 2}), ElementsAre(Range{2, 0, 10}));
}

TEST(Cut, AStreamOfUnknownLengthIsPartZeros) {
  const std::vector<Input> inputs = {Whole(0)};
  EXPECT_THAT(Cut(inputs, {0, 3}), ElementsAre(Range{0, 0, 0}));
  EXPECT_THAT(Cut(inputs, {1, 3}), IsEmpty());
}

TEST(Cut, HugeSizesDoNotOverflow) {
  const std::vector<Input> inputs = {File(std::uint64_t{1} << 63)};
  EXPECT_THAT(Cut(inputs, {999, 1000}), ElementsAre(Range{0, 9214148664817921225U, std::uint64_t{1} << 63}));
}

TEST(Cut, PartsAreDisjointAndCompleteWhateverTheInputs) {
  std::mt19937 random(1);
  for (int world = 0; world < 300; ++world) {
    std::vector<Input> inputs;
    for (auto left = random() % 8; left > 0; --left) {
      inputs.push_back(random() % 3 == 0 ? Whole(random() % 50) : File(random() % 50));
    }
    for (int count = 1; count <= 64; ++count) {
      std::vector<Range> all;
      for (int index = 0; index < count; ++index) {
        const std::vector<Range> part = Cut(inputs, {index, count});
        all.insert(all.end(), part.begin(), part.end());
      }
      std::vector<std::uint64_t> seen(inputs.size(), 0);
      for (const Range& range : all) {
        // Each range must begin where the previous one ended, so that nothing is duplicated or left out.
        if (inputs[range.input].divisible) {
          ASSERT_EQ(range.begin, seen[range.input]);
        }
        seen[range.input] = range.end;
        if (!inputs[range.input].divisible && inputs[range.input].size == 0) seen[range.input] = 1;
      }
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool stream = !inputs[i].divisible && inputs[i].size == 0;
        ASSERT_EQ(seen[i], stream ? 1 : inputs[i].size) << "input " << i << " of " << count << " parts";
      }
      ASSERT_TRUE(std::is_sorted(all.begin(), all.end(),
                                 [](const Range& a, const Range& b) { return a.input < b.input; }) ||
                  std::any_of(inputs.begin(), inputs.end(), [](const Input& i) { return !i.divisible; }));
    }
  }
}

TEST(CutIntoPieces, OnlyWhatIsDivisibleIsDivided) {
  const std::vector<Input> inputs = {File(25), Whole(25)};
  const std::vector<Range> ranges = {{0, 5, 25}, {1, 0, 25}};
  EXPECT_THAT(CutIntoPieces(inputs, ranges, 10),
              ElementsAre(Range{0, 5, 15}, Range{0, 15, 25}, Range{1, 0, 25}));
}

TEST(Shuffle, TheSeedDecidesTheOrder) {
  std::vector<Range> pieces;
  for (std::uint64_t i = 0; i < 100; ++i) pieces.push_back({0, i, i + 1});
  auto once = pieces;
  auto again = pieces;
  auto other = pieces;
  Shuffle(once, 7);
  Shuffle(again, 7);
  Shuffle(other, 8);
  EXPECT_EQ(once, again);
  EXPECT_NE(once, other);
  EXPECT_NE(once, pieces);
  // The order does not depend on the machine or the standard library.
  EXPECT_EQ(once[0].begin, 69U);
  std::sort(once.begin(), once.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  EXPECT_EQ(once, pieces);
}

}  // namespace
}  // namespace warren::data
