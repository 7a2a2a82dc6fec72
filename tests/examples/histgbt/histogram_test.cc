// Histograms on a CPU, compared with row-by-row sums, for every layout and various numbers of features.
#include "examples/histgbt/cpu/histogram.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "examples/histgbt/cpu/columns.h"
#include "tests/examples/histgbt/rows.h"

namespace warren::histgbt {
namespace {

using HistogramTest = InAJobOfOne;

TEST_F(HistogramTest, AreSumsByBin) {
  Threads threads(2);
  std::mt19937 random(5);
  for (const std::uint32_t features : {1U, 2U, 7U, 8U, 9U, 16U, 19U, 31U}) {
    // Seven eighths of these rows are summed, more than twice as many as a packed sum can hold.
    const Block block = RandomRows({10000, features, 0.9, 0}, 7);
    const Cuts cuts = MakeCuts(block.View(), 40, threads);
    std::vector<std::uint32_t> rows;
    std::vector<Packed> gradients;
    for (std::uint32_t row = 0; row < block.rows(); ++row) {
      if (random() % 8 == 0) continue;
      rows.push_back(row);
      gradients.push_back(
          Pack({static_cast<float>(random() % 1000) - 500, static_cast<float>(random() % 1000)}, 1, 1));
    }
    for (const Layout layout : {Layout::kDense8, Layout::kDense16, Layout::kSparse}) {
      const BinnedMatrix matrix = BinRows(block.View(), cuts, layout, threads);
      std::vector<GradientSum> expected(cuts.TotalBins());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t f = 0; f < features; ++f) {
          const std::uint32_t bin = matrix.Bin(rows[i], f, cuts);
          if (bin < cuts.Bins(f)) expected[cuts.FirstBin(f) + bin] += Unpack(gradients[i]);
        }
      }
      HistogramBuilder builder(matrix, cuts);
      for (int time = 0; time < 2; ++time) {  // the second histogram must not contain the first
        std::vector<GradientSum> histogram(cuts.TotalBins());
        builder.Add({rows.data(), gradients.data(), rows.size()}, histogram.data());
        EXPECT_TRUE(histogram == expected) << features << " features, layout " << static_cast<int>(layout);
      }
    }
  }
}

TEST_F(HistogramTest, ColumnsHoldTheBinsOfTheMatrix) {
  Threads threads(3);
  for (const std::size_t num_rows : {0, 1, 255, 256, 257, 5000}) {
    Block block = RandomRows({num_rows, 5, 0.7, 0}, 7);
    if (num_rows == 0) block.offsets.resize(1, 0);
    const Cuts cuts = MakeCuts(RandomRows({500, 5, 0.7, 0}, 8).View(), 40, threads);
    for (const Layout layout : {Layout::kDense8, Layout::kDense16}) {
      const BinnedMatrix matrix = BinRows(block.View(), cuts, layout, threads);
      const Columns columns(matrix, threads);
      for (std::size_t row = 0; row < num_rows; ++row) {
        for (std::size_t f = 0; f < 5; ++f) {
          const std::uint32_t bin =
              layout == Layout::kDense8 ? columns.Dense8(f)[row] : columns.Dense16(f)[row];
          ASSERT_EQ(bin, matrix.Bin(row, f, cuts)) << row << " of " << num_rows;
        }
      }
    }
  }
}

}  // namespace
}  // namespace warren::histgbt
