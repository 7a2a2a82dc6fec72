// What workers agree on.
#include "data/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/error.h"
#include "data/text/libsvm.h"
#include "tests/data/show_rows.h"

namespace warren::data {
namespace {

using Block = RowBlock<std::uint32_t>;

Block Parse(std::string_view text) {
  Block block;
  ParseLibSvmPlainly(text, FirstIndex::kZero, block, [](const Fault& fault) { FAIL() << fault.expected; });
  return block;
}

/// Runs Agree as the workers of a job would: first what each brings, then with the greatest of all.
std::vector<Block> AgreeAll(std::vector<Block> blocks, Indexing indexing) {
  std::vector<std::uint64_t> greatest;
  for (Block copy : blocks) {
    try {
      Agree(copy, indexing, [&](std::uint64_t* values, std::size_t count) {
        greatest.resize(count, 0);
        for (std::size_t i = 0; i < count; ++i) greatest[i] = std::max(greatest[i], values[i]);
      });
    } catch (const DataError&) {
      // What the others bring decides.
    }
  }
  for (Block& block : blocks) {
    Agree(block, indexing,
          [&](std::uint64_t* values, std::size_t count) { std::copy_n(greatest.begin(), count, values); });
  }
  return blocks;
}

TEST(Agree, AllHaveTheColumnsOfTheWidest) {
  for (const Block& block : AgreeAll({Parse("1 0:1 5:1"), Parse("1 9:1"), Parse("1"), {}}, Indexing::kZero)) {
    EXPECT_EQ(block.columns, 10U);
  }
}

TEST(Agree, IndicesThatNeverAreZeroCountFromOneWhenAsked) {
  const auto blocks = AgreeAll({Parse("1 1:1 5:1"), Parse("1 2:1"), Parse("1")}, Indexing::kDetect);
  EXPECT_EQ(ShowRows(blocks[0]), "1 0:1 4:1\ncolumns=5 least=0");
  EXPECT_EQ(ShowRows(blocks[1]), "1 1:1\ncolumns=5 least=1");
  EXPECT_EQ(blocks[2].columns, 5U);
}

TEST(Agree, OneIndexOfZeroAnywhereMeansFromZeroForAll) {
  const auto blocks = AgreeAll({Parse("1 1:1 5:1"), Parse("1 0:1")}, Indexing::kDetect);
  EXPECT_EQ(ShowRows(blocks[0]), "1 1:1 5:1\ncolumns=6 least=1");
}

TEST(Agree, FieldsCountFromOneOnlyTogetherWithIndices) {
  const auto with_fields = [](std::vector<std::uint32_t> fields) {
    Block block = Parse("1 1:1 5:1");
    for (const std::uint32_t field : fields) block.fields.push_back(field);
    return block;
  };
  const auto from_one = AgreeAll({with_fields({1, 2}), with_fields({3, 1})}, Indexing::kDetect);
  EXPECT_EQ(ShowRows(from_one[0]), "1 0/0:1 1/4:1\ncolumns=5 least=0");
  const auto from_zero = AgreeAll({with_fields({1, 2}), with_fields({3, 0})}, Indexing::kDetect);
  EXPECT_EQ(ShowRows(from_zero[0]), "1 1/1:1 2/5:1\ncolumns=6 least=1");
}

TEST(Agree, IndicesStayAsTheyAreUnlessAsked) {
  const auto blocks = AgreeAll({Parse("1 1:1")}, Indexing::kZero);
  EXPECT_EQ(ShowRows(blocks[0]), "1 1:1\ncolumns=2 least=1");
}

TEST(Agree, NoEntriesAtAllAreNoColumns) {
  for (const Block& block : AgreeAll({Parse("1"), {}}, Indexing::kDetect)) EXPECT_EQ(block.columns, 0U);
}

TEST(Agree, RowsWithQueriesHereAndWithoutThereAreAnErrorOnAll) {
  EXPECT_THROW(AgreeAll({Parse("1 qid:1 1:1"), {}, Parse("1 1:1")}, Indexing::kZero), DataError);
  EXPECT_NO_THROW(AgreeAll({Parse("1 qid:1 1:1"), {}, Parse("1 qid:2 1:1")}, Indexing::kZero));
}

}  // namespace
}  // namespace warren::data
