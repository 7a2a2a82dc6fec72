// A data set's pages, read from its text or from a cache.
#include "data/cache/pages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "data/error.h"
#include "data/text/libsvm.h"
#include "tests/data/error_of.h"
#include "tests/data/show_rows.h"
#include "tests/temporary_folder.h"

namespace warren::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Block = RowBlock<std::uint32_t>;

std::string Rows(int count, bool queries = false) {
  std::mt19937 random(1);
  std::string text;
  int query = 0;
  for (int row = 0; row < count; ++row) {
    if (random() % 9 == 0) ++query;
    text += fmt::format("{}", row);
    if (queries) text += fmt::format(" qid:{}", query);
    for (unsigned i = 0; i < 8; ++i) text += fmt::format(" {}:{}", i * 3 + random() % 3, random() % 100);
    text += '\n';
  }
  return text;
}

/// Options for pages of a few rows.
PageOptions Small() {
  PageOptions options;
  options.memory_bytes = 16 << 10;
  return options;
}

/// Visits all pages in order; returns their number.
template <typename Visit>
int ForEach(Pages<std::uint32_t>& pages, Visit&& visit) {
  int count = 0;
  for (RowView<std::uint32_t> page; pages.Next(page); ++count) visit(page);
  return count;
}

std::string All(Pages<std::uint32_t>& pages, int* count = nullptr) {
  Block all;
  const int pages_seen = ForEach(pages, [&](const RowView<std::uint32_t>& page) { all.Append(page); });
  if (count != nullptr) *count = pages_seen;
  return ShowRows(all);
}

class PagesTest : public ::testing::TestWithParam<bool> {
 protected:
  DataUri Uri(const std::string& path) const {
    return ParseDataUri(GetParam() ? path + "#" + folder_ / "cache" : path);
  }
  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(WithAndWithoutACache, PagesTest, ::testing::Bool());

TEST_P(PagesTest, AllRowsComeInOrderAsOftenAsWanted) {
  const DataUri uri = Uri(folder_.Write("a", Rows(3000)));
  const std::string expected = ShowRows(ReadAll<std::uint32_t>(uri));
  Pages<std::uint32_t> pages(uri, {}, Small());
  EXPECT_EQ(pages.rows(), 3000U);
  EXPECT_EQ(pages.entries(), 24000U);
  EXPECT_EQ(pages.columns(), 24U);
  int count = 0;
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(All(pages, &count), expected);
    EXPECT_GT(count, 3);
    pages.Rewind();
  }
}

TEST_P(PagesTest, RewindingInTheMiddleBeginsAtTheFirstRow) {
  const DataUri uri = Uri(folder_.Write("a", Rows(3000)));
  Pages<std::uint32_t> pages(uri, {}, Small());
  RowView<std::uint32_t> page;
  ASSERT_TRUE(pages.Next(page));
  ASSERT_TRUE(pages.Next(page));
  pages.Rewind();
  ASSERT_TRUE(pages.Next(page));
  EXPECT_EQ(page.labels[0], 0);
}

TEST_P(PagesTest, AWeightOfAnotherWorkerGivesAllRowsOne) {
  const DataUri uri = Uri(folder_.Write("a", Rows(3000)));
  ShapeFinder other;
  Block weighted;
  ParseLibSvmPlainly("1,0:2 99:1", FirstIndex::kZero, weighted, [](const Fault&) { FAIL(); });
  other.Add(weighted.View());
  const Pages<std::uint32_t> alone(uri, {}, Small());
  EXPECT_FALSE(alone.shape().has_weights);
  Pages<std::uint32_t> pages(uri, {}, Small(), [&](std::uint64_t* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) values[i] = std::max(values[i], other.words()[i]);
  });
  EXPECT_EQ(pages.columns(), 100U);
  EXPECT_EQ(pages.shape().labels_per_row, 0U);
  ForEach(pages, [&](const RowView<std::uint32_t>& page) {
    ASSERT_EQ(page.weights.size(), page.rows());
    for (const float weight : page.weights) EXPECT_EQ(weight, 1);
  });
}

TEST_P(PagesTest, NoQueryIsOnTwoPages) {
  const DataUri uri = Uri(folder_.Write("a", Rows(5000, true)));
  const std::string expected = ShowRows(ReadAll<std::uint32_t>(uri));
  Pages<std::uint32_t> pages(uri, {}, Small());
  std::set<std::uint64_t> before;
  ForEach(pages, [&](const RowView<std::uint32_t>& page) {
    const std::set<std::uint64_t> here(page.qids.begin(), page.qids.end());
    for (const std::uint64_t query : here) EXPECT_TRUE(before.insert(query).second) << query;
  });
  pages.Rewind();
  EXPECT_EQ(All(pages), expected);
}

TEST_P(PagesTest, AQueryLargerThanAPageStaysWhole) {
  std::string text;
  for (int row = 0; row < 4000; ++row) text += fmt::format("{} qid:7 1:2 3:4\n", row);
  Pages<std::uint32_t> pages(Uri(folder_.Write("a", text)), {}, Small());
  RowView<std::uint32_t> page;
  ASSERT_TRUE(pages.Next(page));
  EXPECT_EQ(page.rows(), 4000U);
  EXPECT_FALSE(pages.Next(page));
}

TEST_P(PagesTest, EveryPageHasTheColumnsOfAllWorkers) {
  Pages<std::uint32_t> pages(Uri(folder_.Write("a", "1 3:1\n")), {}, Small(),
                             [](std::uint64_t* values, std::size_t) { values[0] = 100; });
  RowView<std::uint32_t> page;
  ASSERT_TRUE(pages.Next(page));
  EXPECT_EQ(page.columns, 100U);
}

TEST_P(PagesTest, RowsWithoutAWeightWeighOneWhereverThePagesBegin) {
  for (const int weighty : {0, 2999}) {
    std::string text;
    for (int row = 0; row < 3000; ++row) text += fmt::format("1{} 0:{}\n", row == weighty ? ":3" : "", row);
    const DataUri uri = Uri(folder_.Write("a", text));
    Pages<std::uint32_t> pages(uri, {}, Small());
    int row = 0;
    for (int pass = 0; pass < 2; ++pass, pages.Rewind(), row = 0) {
      ForEach(pages, [&](const RowView<std::uint32_t>& page) {
        ASSERT_THAT(page.weights, SizeIs(page.rows()));
        for (const float weight : page.weights) ASSERT_EQ(weight, row++ == weighty ? 3 : 1);
      });
      EXPECT_EQ(row, 3000);
    }
  }
}

TEST_P(PagesTest, AShuffleDoesNotDependOnTheNumberOfThreads) {
  const std::string path = folder_.Write("a", Rows(30000)) + "?shuffle=3";
  std::set<std::string> orders;
  for (const int threads : {1, 2, 4, 9}) {
    PageOptions options;
    options.memory_bytes = 4 << 20;
    options.reader.threads = threads;
    Pages<std::uint32_t> pages(
        ParseDataUri(GetParam() ? fmt::format("{}#{}.{}", path, folder_ / "cache", threads) : path), {},
        options);
    orders.insert(All(pages));
  }
  EXPECT_THAT(orders, SizeIs(1));
}

TEST_P(PagesTest, PartsAreThoseOfTheReader) {
  const DataUri uri = Uri(folder_.Write("a", Rows(300)));
  for (int part = 0; part < 3; ++part) {
    Pages<std::uint32_t> pages(uri, {part, 3}, Small());
    EXPECT_EQ(All(pages), ShowRows(ReadAll<std::uint32_t>(uri, {part, 3})));
  }
}

TEST(Pages, AColumnThatAppearsBetweenTwoPassesIsAnError) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", "1 3:1\n");
  Pages<std::uint32_t> pages(ParseDataUri(path), {}, Small());
  folder.Write("a", "1 9:1\n");
  pages.Rewind();
  RowView<std::uint32_t> page;
  EXPECT_THAT(ErrorOf([&] { pages.Next(page); }),
              HasSubstr(path + ": column 9 was not there when the rows were first read"));
}

TEST_P(PagesTest, WorkersThatReadPartsOfOtherFilesAllFail) {
  ShapeFinder other;
  other.AddInputs(12345);
  const auto max = [&](std::uint64_t* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) values[i] = std::max(values[i], other.words()[i]);
  };
  const DataUri uri = Uri(folder_.Write("a", Rows(100)));
  EXPECT_THROW(Pages<std::uint32_t>(uri, {0, 2}, Small(), max), DataError);
  EXPECT_NO_THROW(Pages<std::uint32_t>(uri, {0, 1}, Small(), max)) << "data of its own";
}

TEST_P(PagesTest, NoRowsAreNoPages) {
  Pages<std::uint32_t> pages(Uri(folder_.Write("a", "# nothing\n")), {}, Small());
  RowView<std::uint32_t> page;
  EXPECT_FALSE(pages.Next(page));
  EXPECT_EQ(pages.rows(), 0U);
}

TEST_P(PagesTest, DetectingTheFirstIndexIsRefused) {
  EXPECT_THROW(Pages<std::uint32_t>(Uri(folder_.Write("a", "1 1:1\n") + "?indexing_mode=-1"), {}, Small()),
               DataError);
}

class CachedPagesTest : public ::testing::Test {
 protected:
  CachedPagesTest() {
    options_.on_stale_cache = [this](const std::string& why) { stale_.push_back(why); };
  }
  std::string Read(const std::string& uri) {
    Pages<std::uint32_t> pages(ParseDataUri(uri), {}, options_);
    return All(pages);
  }

  TemporaryFolder folder_;
  PageOptions options_ = Small();
  std::vector<std::string> stale_;
};

TEST_F(CachedPagesTest, TheTextIsNotReadAgain) {
  const std::string uri = folder_.Write("a", Rows(100)) + "#" + folder_ / "cache";
  const std::string first = Read(uri);
  const std::string file = folder_ / "cache";
  // A new cache would be a different file.
  std::filesystem::create_hard_link(file, folder_ / "link");
  EXPECT_EQ(Read(uri), first);
  EXPECT_TRUE(std::filesystem::equivalent(file, folder_ / "link"));
  EXPECT_THAT(stale_, IsEmpty());
}

TEST_F(CachedPagesTest, RowsThatDifferInTheirNumberOfLabelsAreNoticedEachTime) {
  for (const std::string& text : {Rows(3000) + "1,2 3:4\n", "1,2 3:4\n" + Rows(3000)}) {
    const DataUri uri = ParseDataUri(folder_.Write("b", text) + "#" + folder_ / "labels");
    for (int run = 0; run < 2; ++run) {
      EXPECT_EQ(Pages<std::uint32_t>(uri, {}, Small()).shape().labels_per_row, 0U) << "run " << run;
    }
  }
}

TEST_F(CachedPagesTest, OtherTextOfTheSameLengthAndTimeIsNoticed) {
  const std::string path = folder_.Write("a", Rows(100));
  const auto time = std::filesystem::last_write_time(path);
  const std::string uri = path + "#" + folder_ / "cache";
  const std::string first = Read(uri);
  std::string other = Rows(100);
  other[0] = '9';
  folder_.Write("a", other);
  std::filesystem::last_write_time(path, time);
  EXPECT_NE(Read(uri), first);
  EXPECT_THAT(stale_, SizeIs(1));
}

TEST_F(CachedPagesTest, AFileThatMayNotBeReadIsNotOverwritten) {
  namespace fs = std::filesystem;
  const std::string path = folder_.Write("a", Rows(10));
  const std::string mine = folder_.Write("mine", "what I wrote\n");
  fs::permissions(folder_ / "", fs::perms::all);
  fs::permissions(mine, fs::perms::none);
  EXPECT_THAT(ErrorOfNobody([&] { Read(path + "#" + mine); }),
              HasSubstr(mine + ": this file cannot be read, and would be overwritten by the cache"));
}

TEST_F(CachedPagesTest, ItMayNotLieAmongTheFilesOfTheDataSet) {
  folder_.Write("data/a.svm", Rows(10));
  const std::string data = folder_ / "data";
  for (const std::string& files : {data, data + "/*"}) {
    EXPECT_THAT(ErrorOf([&] { Read(files + "#" + data + "/cache"); }),
                HasSubstr("the cache would become one of the files of the data set"));
  }
  const std::string all = Read(data);
  EXPECT_EQ(Read(data + "#" + data + "/_cache"), all);
  EXPECT_EQ(Read(data + "/*.svm#" + data + "/cache"), all);
}

TEST_F(CachedPagesTest, ChangedTextOrOptionsMakeItAnew) {
  const std::string path = folder_.Write("a", Rows(100));
  const std::string cache = "#" + folder_ / "cache";
  Read(path + cache);
  folder_.Write("a", Rows(101));
  EXPECT_THAT(Read(path + cache), HasSubstr("\n100 "));
  EXPECT_THAT(stale_, SizeIs(1));
  EXPECT_THAT(Read(path + "?bad_rows=skip" + cache), HasSubstr("\n100 "));
  EXPECT_THAT(stale_, SizeIs(2));
}

TEST_F(CachedPagesTest, ADamagedOrTornOneIsMadeAnew) {
  const std::string path = folder_.Write("a", Rows(100));
  const std::string uri = path + "#" + folder_ / "cache";
  const std::string first = Read(uri);
  const std::string file = folder_ / "cache";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_EQ(Read(uri), first);
  EXPECT_THAT(stale_, ElementsAre(HasSubstr(file)));
}

TEST_F(CachedPagesTest, OneThatShrinksWhileItIsReadIsAnError) {
  const std::string path = folder_.Write("a", Rows(3000));
  Pages<std::uint32_t> pages(ParseDataUri(path + "#" + folder_ / "cache"), {}, options_);
  RowView<std::uint32_t> page;
  ASSERT_TRUE(pages.Next(page));
  std::filesystem::resize_file(folder_ / "cache", 100);
  EXPECT_THROW(pages.Next(page), DataError);
}

TEST_F(CachedPagesTest, AStreamCannotBeCached) {
  EXPECT_THROW(Pages<std::uint32_t>(ParseDataUri("/dev/null#" + folder_ / "cache"), {}, options_), DataError);
}

}  // namespace
}  // namespace warren::data
