// The agreement of workers on the shape of a data set.
#include "data/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/error.h"
#include "data/reader.h"
#include "data/text/libsvm.h"
#include "tests/data/show_rows.h"
#include "tests/temporary_folder.h"

namespace warren::data {
namespace {

using Block = RowBlock<std::uint32_t>;
using ::testing::ElementsAre;

Block ParseRows(std::string_view text) {
  Block block;
  ParseLibSvmPlainly(text, FirstIndex::kZero, block, [](const Fault& fault) { FAIL() << fault.expected; });
  return block;
}

/// Runs Agree as in a job: a first pass collects the maximum of all workers' values, and a second pass gives
/// it to each worker. Returns the workers' blocks. `shapes`, if given, receives each worker's shape.
std::vector<Block> AgreeAll(std::vector<Block> blocks, Indexing indexing,
                            std::vector<Shape>* shapes = nullptr) {
  std::vector<std::uint64_t> greatest;
  for (Block copy : blocks) {
    try {
      Agree(copy, indexing, [&](std::uint64_t* values, std::size_t count) {
        greatest.resize(count, 0);
        for (std::size_t i = 0; i < count; ++i) greatest[i] = std::max(greatest[i], values[i]);
      });
    } catch (const DataError&) {
      // Whether this is an error depends on the other workers' values.
    }
  }
  for (Block& block : blocks) {
    const Shape shape = Agree(block, indexing, [&](std::uint64_t* values, std::size_t count) {
      std::copy_n(greatest.begin(), count, values);
    });
    if (shapes != nullptr) shapes->push_back(shape);
  }
  return blocks;
}

TEST(Agree, AllHaveTheColumnsOfTheWidest) {
  for (const Block& block :
       AgreeAll({ParseRows("1 0:1 5:1"), ParseRows("1 9:1"), ParseRows("1"), {}}, Indexing::kZero)) {
    EXPECT_EQ(block.columns, 10U);
  }
}

TEST(Agree, IndicesThatNeverAreZeroCountFromOneWhenAsked) {
  const auto blocks =
      AgreeAll({ParseRows("1 1:1 5:1"), ParseRows("1 2:1"), ParseRows("1")}, Indexing::kDetect);
  EXPECT_EQ(ShowRows(blocks[0]), "1 0:1 4:1\ncolumns=5 least=0");
  EXPECT_EQ(ShowRows(blocks[1]), "1 1:1\ncolumns=5 least=1");
  EXPECT_EQ(blocks[2].columns, 5U);
}

TEST(Agree, OneIndexOfZeroAnywhereMeansFromZeroForAll) {
  const auto blocks = AgreeAll({ParseRows("1 1:1 5:1"), ParseRows("1 0:1")}, Indexing::kDetect);
  EXPECT_EQ(ShowRows(blocks[0]), "1 1:1 5:1\ncolumns=6 least=1");
}

TEST(Agree, FieldsCountFromOneOnlyTogetherWithIndices) {
  const auto with_fields = [](std::vector<std::uint32_t> fields) {
    Block block = ParseRows("1 1:1 5:1");
    for (const std::uint32_t field : fields) block.fields.push_back(field);
    return block;
  };
  const auto from_one = AgreeAll({with_fields({1, 2}), with_fields({3, 1})}, Indexing::kDetect);
  EXPECT_EQ(ShowRows(from_one[0]), "1 0/0:1 1/4:1\ncolumns=5 least=0");
  const auto from_zero = AgreeAll({with_fields({1, 2}), with_fields({3, 0})}, Indexing::kDetect);
  EXPECT_EQ(ShowRows(from_zero[0]), "1 1/1:1 2/5:1\ncolumns=6 least=1");
}

TEST(Agree, IndicesStayAsTheyAreUnlessAsked) {
  const auto blocks = AgreeAll({ParseRows("1 1:1")}, Indexing::kZero);
  EXPECT_EQ(ShowRows(blocks[0]), "1 1:1\ncolumns=2 least=1");
}

TEST(Agree, NoEntriesAtAllAreNoColumns) {
  for (const Block& block : AgreeAll({ParseRows("1"), {}}, Indexing::kDetect)) EXPECT_EQ(block.columns, 0U);
}

TEST(Agree, RowsWithQueriesHereAndWithoutThereAreAnErrorOnAll) {
  EXPECT_THROW(AgreeAll({ParseRows("1 qid:1 1:1"), {}, ParseRows("1 1:1")}, Indexing::kZero), DataError);
  EXPECT_NO_THROW(AgreeAll({ParseRows("1 qid:1 1:1"), {}, ParseRows("1 qid:2 1:1")}, Indexing::kZero));
}

std::vector<float> Weights(const Block& block) {
  return {block.weights.begin(), block.weights.end()};
}

TEST(Agree, AWeightOfOneWorkerGivesAllRowsOne) {
  std::vector<Shape> shapes;
  const auto blocks =
      AgreeAll({ParseRows("1 1:1\n0 2:1"), ParseRows("1 1:1\n0:3 2:1"), {}}, Indexing::kZero, &shapes);
  EXPECT_THAT(Weights(blocks[0]), ElementsAre(1, 1));
  EXPECT_THAT(Weights(blocks[1]), ElementsAre(1, 3));
  EXPECT_THAT(Weights(blocks[2]), ElementsAre());
  for (const Shape& shape : shapes) EXPECT_TRUE(shape.has_weights);
  const auto without = AgreeAll({ParseRows("1 1:1"), {}}, Indexing::kZero, &shapes);
  EXPECT_THAT(Weights(without[0]), ElementsAre());
  EXPECT_FALSE(shapes.back().has_weights);
}

TEST(Agree, WorkersWithoutRowsKnowLabelsAndQueriesOfTheOthers) {
  std::vector<Shape> shapes;
  AgreeAll({{}, ParseRows("1,0 qid:1 1:1\n0,1 qid:1 1:1"), {}, ParseRows("1,0 qid:2 1:1")}, Indexing::kZero,
           &shapes);
  for (const Shape& shape : shapes) {
    EXPECT_EQ(shape.labels_per_row, 2U);
    EXPECT_TRUE(shape.has_queries);
  }
}

TEST(Agree, LabelsThatDifferBetweenRowsOrWorkersAreKnownToAll) {
  for (const auto& blocks : {std::vector<Block>{ParseRows("1 1:1"), ParseRows("1,0 1:1"), {}},
                             std::vector<Block>{ParseRows("1 1:1"), ParseRows("1,0 1:1\n1 1:1")}}) {
    std::vector<Shape> shapes;
    AgreeAll(blocks, Indexing::kZero, &shapes);
    for (const Shape& shape : shapes) EXPECT_EQ(shape.labels_per_row, 0U);
  }
}

/// What AllreduceMax gives to the workers that made `finders`.
AllreduceMax MaxOf(std::vector<ShapeFinder> finders) {
  return [finders = std::move(finders)](std::uint64_t* values, std::size_t count) mutable {
    for (ShapeFinder& finder : finders) {
      for (std::size_t i = 0; i < count; ++i) values[i] = std::max(values[i], finder.words()[i]);
    }
  };
}

TEST(ShapeFinder, WorkersThatHaveFoundDifferentFilesAllFail) {
  const TemporaryFolder folder;
  const auto finder_of = [&](const std::string& uri) {
    ShapeFinder finder;
    if (!uri.empty()) finder.AddInputs(Reader<std::uint32_t>(ParseDataUri(uri)).inputs_digest());
    return finder;
  };
  const std::string a = folder.Write("a", "1 1:1\n");
  const std::string b = folder.Write("b", "1 1:10\n");
  const std::string copy = folder.Write("copy", "0 2:2\n");
  for (const std::string& other : {b, a + ";" + b, a + ";" + folder.Write("empty", "")}) {
    // The last worker has inputs of its own, which are not compared.
    const std::vector<ShapeFinder> finders = {finder_of(a), finder_of(other), finder_of("")};
    for (const ShapeFinder& finder : finders) {
      EXPECT_THROW(finder.Agree(Indexing::kZero, MaxOf(finders)), DataError) << other;
    }
  }
  const std::vector<ShapeFinder> alike = {finder_of(a), finder_of(copy), finder_of("")};
  for (const ShapeFinder& finder : alike) EXPECT_NO_THROW(finder.Agree(Indexing::kZero, MaxOf(alike)));
}

TEST(FindShape, IsThatOfAllPartsWhicheverIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", "1,0 1:1\n0,1 2:1\n1,1:2 7:1\n");
  for (const char* options : {"?indexing_mode=-1", "?indexing_mode=-1&part=2&n=3"}) {
    const DataUri uri = ParseDataUri(path + options);
    const Shape shape = FindShape(uri).Agree(uri.options.indexing);
    EXPECT_EQ(shape.columns, 7U);
    EXPECT_EQ(shape.labels_per_row, 2U);
    EXPECT_TRUE(shape.has_weights);
    EXPECT_TRUE(shape.counted_from_one);
    EXPECT_FALSE(shape.has_queries);
  }
  EXPECT_THROW(FindShape(ParseDataUri("-?format=csv")), DataError);
}

}  // namespace
}  // namespace warren::data
