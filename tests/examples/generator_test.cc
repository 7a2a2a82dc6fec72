// make_libsvm's rows: they have fixed bytes and the requested shape, and the reader accepts them.
#include "examples/make_libsvm/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>

#include "data/text/libsvm.h"

namespace warren::make_libsvm {
namespace {

std::string Generate(const Options& options) {
  Generator generator(options);
  std::string text;
  for (uint64_t row = options.first_row; row < options.first_row + options.rows; ++row)
    generator.AppendRow(row, text);
  return text;
}

std::map<std::string, int> CountLabels(const std::string& text) {
  std::map<std::string, int> counts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) ++counts[line.substr(0, line.find(' '))];
  return counts;
}

TEST(Generator, OneSeedGivesTheseBytesOnEveryMachine) {
  Options options{.rows = 2, .features = 6, .density = 0.5, .seed = 7};
  EXPECT_EQ(Generate(options), "0 1:-0.0748 4:0.4159 6:-0.1359\n0 2:0.1329 4:0.8163 5:0.4101\n");
  options.task = Task::kRanking;
  EXPECT_EQ(Generate(options), "1 qid:1 1:-0.0748 4:0.4159 6:-0.1359\n2 qid:1 2:0.1329 4:0.8163 5:0.4101\n");
  options.task = Task::kRegression;
  EXPECT_EQ(Generate(options), "-0.2092 1:-0.0748 4:0.4159 6:-0.1359\n-0.0229 2:0.1329 4:0.8163 5:0.4101\n");
  options.task = Task::kMulticlass;
  options.binary_features = true;
  EXPECT_EQ(Generate(options), "2 1:1 4:1 6:1\n2 2:1 4:1 5:1\n");
}

TEST(Generator, AnotherSeedGivesOtherRows) {
  EXPECT_NE(Generate({.seed = 1}), Generate({.seed = 2}));
}

TEST(Generator, RangesOfRowsArePartsOfOneSequence) {
  const std::string whole = Generate({.rows = 30});
  EXPECT_EQ(Generate({.rows = 10}) + Generate({.rows = 20, .first_row = 10}), whole);
}

TEST(Generator, EveryTaskMakesRowsThatCanBeRead) {
  for (const Task task : {Task::kBinary, Task::kRegression, Task::kRanking, Task::kMulticlass}) {
    for (const double density : {1.0, 0.3, 1e-9}) {
      const Options options{.task = task, .rows = 200, .features = 50, .density = density};
      data::RowBlock<uint32_t> block;
      data::ParseLibSvmPlainly(Generate(options), data::FirstIndex::kOne, block,
                               [](const data::Fault& fault) { FAIL() << fault.expected; });
      EXPECT_EQ(block.rows(), 200u);
    }
  }
}

TEST(Generator, DensityIsTheNumberOfFeaturesInARow) {
  const std::string row = Generate({.rows = 1, .features = 126, .density = 0.175, .binary_features = true});
  EXPECT_EQ(std::count(row.begin(), row.end(), ':'), 22);
}

TEST(Generator, LabelsAreBalanced) {
  const auto binary = CountLabels(Generate({.rows = 2000}));
  ASSERT_EQ(binary.size(), 2u);
  EXPECT_GT(binary.at("0"), 600);
  EXPECT_GT(binary.at("1"), 600);
  EXPECT_EQ(CountLabels(Generate({.task = Task::kMulticlass, .rows = 2000, .classes = 7})).size(), 7u);
  EXPECT_EQ(CountLabels(Generate({.task = Task::kRanking, .rows = 2000})).size(), 5u);
}

TEST(Generator, QueriesHaveTheirSize) {
  const std::string text = Generate({.task = Task::kRanking, .rows = 7, .query_size = 3});
  size_t firsts = 0;
  for (size_t at = text.find("qid:1 "); at != std::string::npos; at = text.find("qid:1 ", at + 1)) ++firsts;
  EXPECT_EQ(firsts, 3u);
  EXPECT_NE(text.find("qid:3 "), std::string::npos);
}

TEST(Generator, OptionsOutOfRangeAreRefused) {
  EXPECT_THROW(Validate({.features = 0}), std::runtime_error);
  EXPECT_THROW(Validate({.density = 0}), std::runtime_error);
  EXPECT_THROW(Validate({.density = 1.5}), std::runtime_error);
  EXPECT_THROW(Validate({.noise = -1}), std::runtime_error);
  EXPECT_THROW(Validate({.query_size = 0}), std::runtime_error);
  constexpr auto kMaxRow = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  EXPECT_NO_THROW(Validate({.rows = 7, .first_row = kMaxRow - 7}));
  EXPECT_THROW(Validate({.rows = 8, .first_row = kMaxRow - 7}), std::runtime_error);
  EXPECT_THROW(Validate({.rows = 1, .first_row = std::numeric_limits<uint64_t>::max()}), std::runtime_error);
  EXPECT_THROW(Validate({.classes = 1}), std::runtime_error);
}

}  // namespace
}  // namespace warren::make_libsvm
