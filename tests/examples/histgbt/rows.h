// Rows, and a job of one worker, for the tests of histgbt.
#pragma once

#include <gtest/gtest.h>
#include <rabit/rabit.h>

#include <cstdint>
#include <random>

#include "data/row_block.h"

namespace warren::histgbt {

using Block = data::RowBlock<std::uint32_t>;

inline void AddRow(Block& block, float label, const std::vector<std::pair<std::uint32_t, float>>& entries) {
  if (block.offsets.empty()) block.offsets.push_back(0);
  for (const auto& [index, value] : entries) {
    block.indices.push_back(index);
    block.values.push_back(value);
    block.columns = std::max<std::uint64_t>(block.columns, index + 1);
  }
  block.offsets.push_back(block.indices.size());
  block.labels.push_back(label);
}

struct Shape {
  std::size_t rows = 1000;
  std::uint32_t features = 5;
  double density = 1;
  int distinct = 0;  ///< number of distinct values of a feature; 0 means unlimited
};

/// Random rows. The label depends on the first two features and on chance, and is 1 for about half of the
/// rows.
inline Block RandomRows(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  Block block;
  for (std::size_t row = 0; row < shape.rows; ++row) {
    std::vector<std::pair<std::uint32_t, float>> entries;
    float score = 0;
    for (std::uint32_t f = 0; f < shape.features; ++f) {
      if (uniform(random) >= shape.density) continue;
      float value = uniform(random) * 8 - 4;
      if (shape.distinct > 0)
        value = static_cast<float>(static_cast<int>(uniform(random) * static_cast<float>(shape.distinct)));
      if (f < 2) score += value;
      entries.emplace_back(f, value);
    }
    AddRow(block,
           score + uniform(random) > (shape.distinct > 0 ? static_cast<float>(shape.distinct) : 0.5F) ? 1 : 0,
           entries);
  }
  block.columns = shape.features;
  return block;
}

inline Block Part(const Block& block, std::size_t begin, std::size_t end) {
  Block part;
  part.Append(block.View().Part(begin, end));
  part.columns = block.columns;
  return part;
}

inline Block Backwards(const Block& block) {
  Block backwards;
  for (std::size_t row = block.rows(); row-- > 0;) backwards.Append(block.View().Part(row, row + 1));
  backwards.columns = block.columns;
  return backwards;
}

class InAJobOfOne : public testing::Test {
 protected:
  static void SetUpTestSuite() { rabit::Init(0, nullptr); }
  static void TearDownTestSuite() { rabit::Finalize(); }
};

}  // namespace warren::histgbt
