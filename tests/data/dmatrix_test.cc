// Row blocks as XGBoost matrices, compared with XGBoost's own reader of the same files.
#include "data/xgboost/dmatrix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xgboost/c_api.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "data/error.h"
#include "data/reader.h"
#include "data/xgboost/dmatrix_pages.h"
#include "tests/data/error_of.h"
#include "tests/temporary_folder.h"

namespace warren::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Matrix = std::unique_ptr<void, decltype(&XGDMatrixFree)>;

void Check(int return_code) {
  ASSERT_EQ(return_code, 0) << XGBGetLastError();
}

Matrix OfXgboost(const std::string& path) {
  DMatrixHandle handle = nullptr;
  Check(XGDMatrixCreateFromFile((path + "?format=libsvm").c_str(), 1, &handle));
  return {handle, XGDMatrixFree};
}

Matrix Ours(const std::string& uri, Share share = {}) {
  return {MakeDMatrix(ReadAll<std::uint32_t>(ParseDataUri(uri), share).View()), XGDMatrixFree};
}

template <typename T>
std::vector<T> Info(const Matrix& matrix, const char* field) {
  bst_ulong count = 0;
  if constexpr (std::is_same_v<T, float>) {
    const float* values = nullptr;
    Check(XGDMatrixGetFloatInfo(matrix.get(), field, &count, &values));
    return {values, values + count};
  } else {
    const T* values = nullptr;
    Check(XGDMatrixGetUIntInfo(matrix.get(), field, &count, &values));
    return {values, values + count};
  }
}

struct Contents {
  std::vector<bst_ulong> offsets;
  std::vector<unsigned> indices;
  std::vector<float> values;
  bst_ulong columns = 0;
  std::vector<float> labels;
  std::vector<float> weights;
  std::vector<unsigned> groups;
};

Contents ContentsOf(const Matrix& matrix) {
  Contents contents;
  bst_ulong rows = 0;
  bst_ulong entries = 0;
  Check(XGDMatrixNumRow(matrix.get(), &rows));
  Check(XGDMatrixNumCol(matrix.get(), &contents.columns));
  Check(XGDMatrixNumNonMissing(matrix.get(), &entries));
  contents.offsets.resize(rows + 1);
  // One extra element, since the function does not accept null pointers.
  contents.indices.resize(entries + 1);
  contents.values.resize(entries + 1);
  Check(XGDMatrixGetDataAsCSR(matrix.get(), "{}", contents.offsets.data(), contents.indices.data(),
                              contents.values.data()));
  contents.indices.pop_back();
  contents.values.pop_back();
  contents.labels = Info<float>(matrix, "label");
  contents.weights = Info<float>(matrix, "weight");
  contents.groups = Info<unsigned>(matrix, "group_ptr");
  return contents;
}

void ExpectEqual(const Contents& ours, const Contents& theirs) {
  EXPECT_EQ(ours.offsets, theirs.offsets);
  EXPECT_EQ(ours.indices, theirs.indices);
  // XGBoost's reader does not round to the nearest float: most values are equal, some are neighbors.
  EXPECT_THAT(ours.values, ::testing::Pointwise(::testing::FloatEq(), theirs.values));
  EXPECT_EQ(ours.columns, theirs.columns);
  EXPECT_EQ(ours.labels, theirs.labels);
  EXPECT_EQ(ours.weights, theirs.weights);
  EXPECT_EQ(ours.groups, theirs.groups);
}

std::string RandomRows(std::uint32_t seed, bool weights, bool queries, int rows = 500) {
  std::mt19937 random(seed);
  std::string text;
  int query = 0;
  for (int row = 0; row < rows; ++row) {
    if (random() % 5 == 0) ++query;
    text += fmt::format("{}", random() % 3);
    if (weights) text += fmt::format(":{}", 1 + random() % 4);
    if (queries) text += fmt::format(" qid:{}", query);
    for (unsigned i = random() % 4; i < 60; i += 1 + random() % 9) {
      text += fmt::format(" {}:{:.{}f}", i, static_cast<double>(random()) / 1e9 - 2, random() % 8);
    }
    text += random() % 10 == 0 ? " # note\n" : "\n";
  }
  return text;
}

TEST(MakeDMatrix, IsWhatXgboostsOwnReaderMakes) {
  const TemporaryFolder folder;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const std::string path = folder.Write("a", RandomRows(seed, seed % 2 == 0, false));
    ExpectEqual(ContentsOf(Ours(path)), ContentsOf(OfXgboost(path)));
  }
}

TEST(MakeDMatrix, QueriesBecomeTheGroupsOfXgboostsOwnReader) {
  const TemporaryFolder folder;
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const std::string path = folder.Write("a", RandomRows(seed, false, true));
    ExpectEqual(ContentsOf(Ours(path)), ContentsOf(OfXgboost(path)));
  }
}

TEST(MakeDMatrix, ARealDataSetIsTheSame) {
  const std::string path = "/usr/share/doc/liblinear-tools/examples/heart_scale";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not installed";
  ExpectEqual(ContentsOf(Ours(path)), ContentsOf(OfXgboost(path)));
}

TEST(MakeDMatrix, NoRowsAreAMatrixWithoutRows) {
  const TemporaryFolder folder;
  const Contents contents = ContentsOf(Ours(folder.Write("a", "")));
  EXPECT_THAT(contents.offsets, ElementsAre(0));
  EXPECT_THAT(contents.labels, IsEmpty());
}

TEST(MakeDMatrix, AQueryHasOneWeight) {
  const TemporaryFolder folder;
  const Contents contents =
      ContentsOf(Ours(folder.Write("a", "1:2 qid:1 1:1\n0:2 qid:1 1:2\n1:3 qid:2 1:1\n")));
  EXPECT_THAT(contents.weights, ElementsAre(2, 3));
  EXPECT_THAT(contents.groups, ElementsAre(0, 2, 3));
  EXPECT_THAT(ErrorOf([&] { Ours(folder.Write("b", "1:2 qid:1 1:1\n0:3 qid:1 1:2\n")); }),
              HasSubstr("row 1 has weight 3, but its query began with 2"));
}

TEST(MakeDMatrix, SeveralLabelsAreAMatrixWhenAllRowsHaveAsMany) {
  const TemporaryFolder folder;
  EXPECT_THAT(ContentsOf(Ours(folder.Write("a", "1,2 1:1\n3,4 1:1\n"))).labels, ElementsAre(1, 2, 3, 4));
  EXPECT_THROW(Ours(folder.Write("b", "1,2 1:1\n3 1:1\n")), DataError);
}

TEST(MakeDMatrix, WhatXgboostRefusesIsAnErrorWithItsWords) {
  const TemporaryFolder folder;
  EXPECT_THAT(ErrorOf([&] { Ours(folder.Write("a", "1 1:inf\n")); }),
              AllOf(HasSubstr("`inf`"), Not(HasSubstr("Stack trace"))));
}

/// The model after a few rounds, as text.
std::string Train(void* matrix) {
  BoosterHandle booster = nullptr;
  Check(XGBoosterCreate(&matrix, 1, &booster));
  const std::unique_ptr<void, decltype(&XGBoosterFree)> owner(booster, XGBoosterFree);
  Check(XGBoosterSetParam(booster, "tree_method", "hist"));
  Check(XGBoosterSetParam(booster, "max_depth", "3"));
  for (int round = 0; round < 3; ++round) Check(XGBoosterUpdateOneIter(booster, round, matrix));
  bst_ulong count = 0;
  const char** trees = nullptr;
  Check(XGBoosterDumpModel(booster, "", 1, &count, &trees));
  return fmt::format("{}", fmt::join(trees, trees + count, "\n"));
}

TEST(DMatrixPages, ExternalMemoryTrainsTheModelOfMemory) {
  const TemporaryFolder folder;
  // There are so few distinct values that each has its own bin, whichever cuts XGBoost chooses.
  std::mt19937 random(5);
  std::string text;
  for (int row = 0; row < 4000; ++row) {
    text += fmt::format("{}", random() % 2);
    for (int i = 0; i < 10; ++i) text += fmt::format(" {}:{}", i, random() % 20);
    text += '\n';
  }
  const std::string path = folder.Write("a", text);
  const std::string expected = Train(Ours(path).get());
  for (const char* const cache : {"", "#cache"}) {
    PageOptions options;
    options.memory_bytes = 64 << 10;
    const std::string uri = *cache != '\0' ? path + "#" + folder / "cache" : path;
    Pages<std::uint32_t> pages(ParseDataUri(uri), {}, options);
    const DMatrixPages matrix(pages, folder / "xgboost");
    EXPECT_EQ(Train(matrix.handle()), expected);
  }
}

TEST(DMatrixPages, AnErrorOfAPageIsTheCallersError) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 3000; ++row) text += "1 1:2\n";
  const std::string path = folder.Write("a", text);
  PageOptions options;
  options.memory_bytes = 16 << 10;
  Pages<std::uint32_t> pages(ParseDataUri(path + "#" + folder / "cache"), {}, options);
  std::filesystem::resize_file(folder / "cache", 200);
  EXPECT_THROW(DMatrixPages(pages, folder / "xgboost"), DataError);
}

}  // namespace
}  // namespace warren::data
