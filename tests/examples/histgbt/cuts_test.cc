// Sketches, cuts and bins: their contents, which must not depend on the order or division of the rows.
#include "examples/histgbt/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/sketch.h"
#include "examples/histgbt/value_index.h"
#include "tests/examples/histgbt/rows.h"

namespace warren::histgbt {
namespace {

using testing::ElementsAre;

using CutsTest = InAJobOfOne;

std::vector<char> Encoded(std::vector<FeatureSketch> sketches, std::size_t sample_size) {
  std::vector<char> bytes;
  for (FeatureSketch& sketch : sketches) {
    sketch.Settle(sample_size);
    sketch.Encode(bytes);
  }
  return bytes;
}

TEST(Sketch, PartsMergeIntoWhatTheWholeGives) {
  const SketchOptions options{64, 16};
  Threads threads(1);
  for (const Shape& shape :
       {Shape{3000, 4, 1, 0}, Shape{3000, 4, 0.3, 0}, Shape{3000, 4, 1, 10}, Shape{40, 3, 1, 0}}) {
    const Block block = RandomRows(shape, 7);
    const auto whole = Encoded(SketchRows(block.View(), options, threads), options.sample_size);
    for (const std::size_t parts : {2, 3, 7}) {
      std::vector<FeatureSketch> merged;
      for (std::size_t part = parts; part-- > 0;) {  // in reverse order: the order of merging must not matter
        const Block own = Part(block, shape.rows * part / parts, shape.rows * (part + 1) / parts);
        auto sketches = SketchRows(own.View(), options, threads);
        if (merged.empty()) {
          merged = std::move(sketches);
          continue;
        }
        for (std::size_t f = 0; f < merged.size(); ++f)
          merged[f].Merge(sketches[f], options.sample_size, options.most_distinct);
      }
      EXPECT_EQ(Encoded(std::move(merged), options.sample_size), whole) << parts;
    }
    Threads three(3);
    EXPECT_EQ(Encoded(SketchRows(block.View(), options, three), options.sample_size), whole);
  }
}

/// The rows of this test occur several times, and some differ only by the order of their two values.
TEST(Sketch, RowsOfSmallWholeNumbersMergeExactly) {
  Threads threads(1);
  for (unsigned seed = 0; seed < 60; ++seed) {
    const SketchOptions options{24, 3};
    std::mt19937 random(seed);
    Block block;
    for (int row = 0; row < 250; ++row) {
      AddRow(block, 0,
             {{0, static_cast<float>(random() % 10 + 1)}, {1, static_cast<float>(random() % 10 + 1)}});
    }
    Block backwards;
    for (int times = 0; times < 4; ++times) {
      for (std::size_t row = 250; row-- > 0;) backwards.Append(block.View().Part(row, row + 1));
    }
    for (int times = 0; times < 3; ++times) block.Append(Part(block, 0, 250).View());
    EXPECT_EQ(Encoded(SketchRows(block.View(), options, threads), options.sample_size),
              Encoded(SketchRows(backwards.View(), options, threads), options.sample_size))
        << seed;
  }
}

TEST(Sketch, DifferentRowsHaveDifferentHashes) {
  Threads threads(1);
  Block block;
  for (int a = 1; a <= 40; ++a) {
    for (int b = 1; b <= 40; ++b) {
      AddRow(block, 0, {{0, static_cast<float>(a)}, {1, static_cast<float>(b)}});
    }
  }
  const SketchOptions options{100000, 1};
  const auto sketches = SketchRows(block.View(), options, threads);
  EXPECT_EQ(sketches[0].sample_rows(), 1600U);
}

TEST(Sketch, ComesBackFromItsBytes) {
  const SketchOptions options{64, 16};
  Threads threads(1);
  const Block block = RandomRows({500, 3, 0.7, 0}, 1);
  for (FeatureSketch& sketch : SketchRows(block.View(), options, threads)) {
    std::vector<char> bytes;
    sketch.Encode(bytes);
    EXPECT_EQ(bytes.size(), sketch.EncodedBytes());
    const char* at = bytes.data();
    const char* const end = bytes.data() + bytes.size();
    const FeatureSketch back = FeatureSketch::Decode(at, end);
    EXPECT_EQ(at, end);
    EXPECT_EQ(back.count(), sketch.count());
    EXPECT_EQ(back.Candidates(), sketch.Candidates());
  }
}

TEST(Sketch, BytesThatAreCutOffAreAnError) {
  Threads threads(1);
  const Block block = RandomRows({100, 1, 1, 0}, 1);
  std::vector<char> bytes;
  SketchRows(block.View(), {64, 16}, threads)[0].Encode(bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<char> some(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const char* at = some.data();
    EXPECT_THROW(FeatureSketch::Decode(at, at + size), std::runtime_error) << size;
  }
}

TEST(Sketch, ManyEqualRowsTakeOnePlaceInTheSample) {
  const SketchOptions options{64, 16};
  Threads threads(1);
  Block block = RandomRows({500, 2, 1, 0}, 1);
  for (int i = 0; i < 5000; ++i) AddRow(block, 0, {{0, 1.5F}, {1, 2.5F}});
  for (const FeatureSketch& sketch : SketchRows(block.View(), options, threads)) {
    EXPECT_EQ(sketch.count(), 5500U);
    EXPECT_GE(sketch.Candidates().size(), 64U);
  }
}

TEST(Sketch, UsableValuesAreFiniteAndHaveOneZero) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float value = std::nanf("");
  EXPECT_FALSE(Usable(value));
  value = -kInfinity;
  EXPECT_TRUE(Usable(value));
  EXPECT_EQ(value, std::numeric_limits<float>::lowest());
  value = -0.0F;
  EXPECT_TRUE(Usable(value));
  EXPECT_FALSE(std::signbit(value));
}

TEST(ChooseCuts, EveryValueHasItsBinWhenThereAreEnough) {
  EXPECT_THAT(ChooseCuts(std::vector<std::uint64_t>{5, 1, 1, 900}, 4), ElementsAre(1, 2, 3));
  EXPECT_THAT(ChooseCuts(std::vector<std::uint64_t>{5}, 4), ElementsAre());
  EXPECT_THAT(ChooseCuts(std::vector<std::uint64_t>{}, 4), ElementsAre());
}

TEST(ChooseCuts, BinsHaveAboutTheSameNumberOfRows) {
  const std::vector<std::uint64_t> counts(1000, 10);
  const auto cuts = ChooseCuts(counts, 10);
  ASSERT_EQ(cuts.size(), 9U);
  for (std::size_t i = 0; i < cuts.size(); ++i) EXPECT_EQ(cuts[i], 100 * (i + 1));
}

TEST(ChooseCuts, AHeavyValueIsAloneAndTheOthersShareTheRest) {
  std::vector<std::uint64_t> counts(100, 10);
  counts[40] = 100000;
  const auto cuts = ChooseCuts(counts, 11);
  EXPECT_THAT(cuts, testing::IsSupersetOf({40U, 41U}));
  EXPECT_EQ(cuts.size(), 10U);
}

TEST_F(CutsTest, AreTheSameForAnyOrderOfRowsAndNumberOfThreads) {
  const Block block = RandomRows({4000, 6, 0.8, 0}, 3);
  const Block backwards = Backwards(block);
  Threads one(1);
  Threads four(4);
  const Cuts cuts = MakeCuts(block.View(), 32, one);
  for (const Cuts& other : {MakeCuts(backwards.View(), 32, one), MakeCuts(block.View(), 32, four)}) {
    EXPECT_EQ(cuts.values, other.values);
    EXPECT_EQ(cuts.offsets, other.offsets);
    EXPECT_EQ(cuts.has_missing, other.has_missing);
  }
}

TEST_F(CutsTest, BinsHoldNearlyEqualPartsOfTheRows) {
  Threads threads(2);
  constexpr std::size_t kRows = 200000;
  const Block block = RandomRows({kRows, 1, 1, 0}, 3);
  const Cuts cuts = MakeCuts(block.View(), 64, threads);
  ASSERT_EQ(cuts.Bins(0), 64U);
  std::vector<std::size_t> sizes(64);
  for (const float value : block.values) ++sizes[CountUpTo(cuts.Of(0), value)];
  for (const std::size_t size : sizes)
    EXPECT_NEAR(static_cast<double>(size), kRows / 64.0, 0.4 * kRows / 64.0);
}

TEST_F(CutsTest, FewDistinctValuesAreAllKnownHoweverRare) {
  Threads threads(2);
  Block block;
  for (int row = 0; row < 50000; ++row)
    AddRow(block, 0, {{0, row == 31000 ? 1.0F : 0.0F}, {1, static_cast<float>(row)}});
  const Cuts cuts = MakeCuts(block.View(), 16, threads);
  EXPECT_THAT(cuts.Of(0), ElementsAre(1.0F));
  EXPECT_EQ(cuts.Bins(1), 16U);
}

TEST_F(CutsTest, AFeatureThatSomeRowsLackHasABinLess) {
  Threads threads(1);
  Block block;
  for (int row = 0; row < 1000; ++row) {
    if (row == 5)
      AddRow(block, 0, {{0, 1.0F}});
    else
      AddRow(block, 0, {{0, static_cast<float>(row)}, {1, static_cast<float>(row)}});
  }
  const Cuts cuts = MakeCuts(block.View(), 256, threads);
  EXPECT_EQ(cuts.Bins(0), 256U);
  EXPECT_EQ(cuts.Bins(1), 255U);
  EXPECT_THAT(cuts.has_missing, ElementsAre(0, 1));
}

TEST_F(CutsTest, TwoBinsAreTheLeast) {
  Threads threads(1);
  const Block block = RandomRows({500, 2, 0.5, 0}, 9);
  const Cuts cuts = MakeCuts(block.View(), 2, threads);
  EXPECT_EQ(cuts.Bins(0), 2U);
  EXPECT_EQ(cuts.Bins(1), 2U);
}

TEST_F(CutsTest, AllLayoutsHaveTheSameBins) {
  Threads threads(2);
  Block block = RandomRows({600, 7, 0.6, 0}, 5);
  block.values[3] = std::nanf("");
  block.values[4] = std::numeric_limits<float>::infinity();
  const Cuts cuts = MakeCuts(block.View(), 20, threads);
  const BinnedMatrix dense8 = BinRows(block.View(), cuts, Layout::kDense8, threads);
  const BinnedMatrix dense16 = BinRows(block.View(), cuts, Layout::kDense16, threads);
  const BinnedMatrix sparse = BinRows(block.View(), cuts, Layout::kSparse, threads);
  for (std::size_t row = 0; row < block.rows(); ++row) {
    std::vector<std::uint32_t> expected;
    for (std::size_t f = 0; f < 7; ++f) expected.push_back(cuts.Bins(f));
    for (std::uint64_t e = block.offsets[row]; e < block.offsets[row + 1]; ++e) {
      float value = block.values[e];
      const auto own = cuts.Of(block.indices[e]);
      if (Usable(value))
        expected[block.indices[e]] =
            static_cast<std::uint32_t>(std::upper_bound(own.begin(), own.end(), value) - own.begin());
    }
    for (std::size_t f = 0; f < 7; ++f) {
      EXPECT_EQ(dense8.Bin(row, f, cuts), expected[f]);
      EXPECT_EQ(dense16.Bin(row, f, cuts), expected[f]);
      EXPECT_EQ(sparse.Bin(row, f, cuts), expected[f]);
    }
  }
}

TEST_F(CutsTest, TheLayoutFollowsFromWhatIsThere) {
  Threads threads(1);
  const auto layout = [&](const Shape& shape, std::size_t max_bin) {
    const Block block = RandomRows(shape, 5);
    return BinRows(block.View(), MakeCuts(block.View(), max_bin, threads), threads).layout;
  };
  EXPECT_EQ(layout({3000, 4, 1, 0}, 256), Layout::kDense8);
  EXPECT_EQ(layout({3000, 4, 0.9, 0}, 256), Layout::kDense8);
  EXPECT_EQ(layout({3000, 4, 1, 0}, 257), Layout::kDense16);
  EXPECT_EQ(layout({3000, 40, 0.05, 0}, 256), Layout::kSparse);

  // 256 bins, made from rows without missing values, fit into a byte. Missing values in other rows need one
  // more bin.
  const Block whole = RandomRows({3000, 4, 1, 0}, 5);
  const Cuts cuts = MakeCuts(whole.View(), 256, threads);
  EXPECT_EQ(BinRows(RandomRows({300, 4, 0.9, 0}, 6).View(), cuts, threads).layout, Layout::kDense16);
}

}  // namespace
}  // namespace warren::histgbt
