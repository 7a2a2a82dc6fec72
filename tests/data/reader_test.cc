// The reader: the rows of each part, queries that stay whole, bad rows, and unreadable files.
#include "data/reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "data/error.h"
#include "tests/data/compressed.h"
#include "tests/data/error_of.h"
#include "tests/data/show_rows.h"
#include "tests/temporary_folder.h"

namespace warren::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Block = RowBlock<std::uint32_t>;

ReaderOptions Small(int threads, std::size_t chunk_bytes = 64) {
  ReaderOptions options;
  options.threads = threads;
  options.chunk_bytes = chunk_bytes;
  return options;
}

Block Read(const std::string& uri, Share share = {}, const ReaderOptions& options = Small(1)) {
  return ReadAll<std::uint32_t>(ParseDataUri(uri), share, options);
}

std::string ReaderError(const std::string& uri, const ReaderOptions& options = Small(1)) {
  return ErrorOf([&] { Read(uri, {}, options); });
}

/// `count` rows that can be told apart: their labels are first, first + 1, ...
std::string NumberedRows(std::mt19937& random, int first, int count, bool queries = false) {
  const char* const ends[] = {"\n", "\r\n", "\r", "\n\n", " # end\n"};
  std::string text;
  int query = static_cast<int>(random() % 100);
  for (int row = first; row < first + count; ++row) {
    if (random() % 3 == 0) ++query;
    text += fmt::format("{}", row);
    if (queries) text += fmt::format(" qid:{}", query);
    for (auto words = random() % 6; words > 0; --words)
      text += fmt::format(" {}:{}", 200 * (words - 1) + random() % 200, random() % 7);
    text += random() % 4 == 0 ? ends[random() % 5] : "\n";
  }
  if (random() % 2 == 0 && text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<float> Labels(const Block& block) {
  return {block.labels.begin(), block.labels.end()};
}

std::vector<Block> Parts(const std::string& uri, int count, const ReaderOptions& options = Small(1)) {
  std::vector<Block> parts;
  for (int part = 0; part < count; ++part) parts.push_back(Read(uri, {part, count}, options));
  return parts;
}

/// The labels of all parts, one part after the other.
std::vector<float> Labels(const std::vector<Block>& parts) {
  std::vector<float> labels;
  for (const Block& part : parts) labels.insert(labels.end(), part.labels.begin(), part.labels.end());
  return labels;
}

/// The query ids of all parts. None may be in two parts.
std::set<std::uint64_t> Queries(const std::vector<Block>& parts) {
  std::set<std::uint64_t> all;
  for (const Block& part : parts) {
    const std::set<std::uint64_t> queries(part.qids.begin(), part.qids.end());
    for (const std::uint64_t query : queries) EXPECT_TRUE(all.insert(query).second) << query;
  }
  return all;
}

std::vector<float> UpTo(int count) {
  std::vector<float> labels;
  for (int i = 0; i < count; ++i) labels.push_back(static_cast<float>(i));
  return labels;
}

TEST(Reader, ReadsAFile) {
  const TemporaryFolder folder;
  const Block block = Read(folder.Write("a", "1 0:1 3:2.5\n"));
  EXPECT_EQ(ShowRows(block), "1 0:1 3:2.5\ncolumns=4 least=0");
}

TEST(Reader, FilesFoldersAndPatternsComeInAFixedOrder) {
  const TemporaryFolder folder;
  folder.Write("set/b", "2\n");
  folder.Write("set/a", "1");
  folder.Write("set/_SUCCESS", "junk");
  folder.Write("set/.hidden", "junk");
  folder.Write("set/inner/c", "junk");
  folder.Write("other1", "3\n");
  folder.Write("other2", "4\n");
  EXPECT_THAT(Labels(Read(folder / "set")), ElementsAre(1, 2));
  EXPECT_THAT(Labels(Read(folder / "other?" + ";" + folder / "set")), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(Labels(Read("file://" + folder / "other1")), ElementsAre(3));
}

TEST(Reader, WhatIsNotThereIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  EXPECT_THAT(ReaderError(folder / "none"), AllOf(HasSubstr(folder / "none"), HasSubstr("No such file")));
  EXPECT_THAT(ReaderError(folder / "*.txt"), HasSubstr("no file matches the pattern"));
  EXPECT_THAT(ReaderError(folder / "empty"), HasSubstr("the folder has no data files"));
}

TEST(Reader, AFileThatIsNamedTwiceByWhateverNamesIsAnError) {
  const TemporaryFolder folder;
  const std::string a = folder.Write("set/a", "1 1:1\n");
  const std::string b = folder.Write("b", "1 1:1\n");
  const std::string words = " is named twice, by '{}' and by '{}'; its rows would count twice. Name it once";
  const auto by = [&](const std::string& first, const std::string& other) {
    return fmt::format(fmt::runtime(words), first, other);
  };
  EXPECT_EQ(ReaderError(a + ";" + b + ";" + a), a + by(a, a));
  EXPECT_EQ(ReaderError(a + ";" + folder / "set"), a + by(a, folder / "set"));
  EXPECT_EQ(ReaderError(folder / "*/a;file://" + a), a + by(folder / "*/a", "file://" + a));
  const std::string again = folder / "set/../set/./a";
  EXPECT_EQ(ReaderError(a + ";" + again), again + by(a, again));
  for (const bool is_symbolic : {true, false}) {
    const std::string link = folder / (is_symbolic ? "symbolic" : "hard");
    is_symbolic ? std::filesystem::create_symlink(a, link) : std::filesystem::create_hard_link(a, link);
    EXPECT_EQ(ReaderError(a + ";" + link),
              link + " is named twice: " + a + " is the same file; its rows would count twice. Name it once");
  }
  EXPECT_EQ(Read(a + ";" + b).rows(), 2U);
}

TEST(Reader, PartsAreDisjointAndCompleteAndKeepTheOrderForEveryNumberOfParts) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 12; ++trial) {
    const TemporaryFolder folder;
    std::string uri;
    int rows = 0;
    for (int file = 0; file < 3; ++file) {
      const int count = static_cast<int>(random() % 40);
      uri +=
          (file > 0 ? ";" : "") + folder.Write(fmt::format("f{}", file), NumberedRows(random, rows, count));
      rows += count;
    }
    for (int parts = 1; parts <= 64; ++parts) {
      const ReaderOptions options = Small(parts % 8 == 0 ? 2 : 1, 1 + random() % 200);
      ASSERT_EQ(Labels(Parts(uri, parts, options)), UpTo(rows)) << parts << " parts of " << uri;
    }
  }
}

TEST(Reader, QueriesAreNeverSplit) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 10; ++trial) {
    const TemporaryFolder folder;
    const std::string path = folder.Write("ranking", NumberedRows(random, 0, 60, true));
    const auto queries = Queries({Read(path)});
    for (int count = 1; count <= 64; ++count) {
      const std::vector<Block> parts = Parts(path, count);
      ASSERT_EQ(Queries(parts), queries);
      ASSERT_EQ(Labels(parts), UpTo(60));
    }
  }
}

TEST(Reader, ABadRowIsNoEndOfAQuery) {
  const TemporaryFolder folder;
  std::string text;
  std::string csv;
  for (int row = 0; row < 300; ++row) {
    text += fmt::format("{}{} 0:1\n", row, row % 3 == 1 ? "" : row % 3 == 2 ? " qid:x" : " qid:7");
    csv += fmt::format("{},{},1\n", row, row % 3 == 0 ? "7" : row % 3 == 1 ? "" : "x");
  }
  for (const std::string& uri :
       {folder.Write("a", text) + "?bad_rows=skip",
        folder.Write("b", csv) + "?format=csv&label_column=0&qid_column=1&bad_rows=skip"}) {
    std::multiset<std::size_t> rows;
    for (const Block& part : Parts(uri, 5)) rows.insert(part.rows());
    EXPECT_EQ(rows, (std::multiset<std::size_t>{0, 0, 0, 0, 100})) << uri;
  }
}

TEST(Reader, QueriesOfCsvAreNeverSplitEither) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 100; ++row) text += fmt::format("{},{},0.5\n", row, row / 7);
  const std::string uri = folder.Write("a.csv", text) + "?format=csv&label_column=0&qid_column=1";
  EXPECT_THAT(Queries(Parts(uri, 9)), SizeIs(15));
}

TEST(Reader, ThePartInTheNameCounts) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", "0\n1\n2\n3\n");
  EXPECT_THAT(Labels(Read(path + "?part=0&n=2")), ElementsAre(0, 1, 2));
  EXPECT_THAT(Labels(Read(path + "?part=1&n=2")), ElementsAre(3));
  EXPECT_THAT(Labels(Read(path + "?part=1&n=2", {0, 4})), ElementsAre(3));
}

TEST(Reader, AnyNumberOfThreadsGivesTheSameRowsInTheSameOrder) {
  std::mt19937 random(5);
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", NumberedRows(random, 0, 3000));
  const std::string expected = ShowRows(Read(path));
  for (const int threads : {1, 2, 3, 8}) {
    for (const std::size_t chunk : {7UL, 100UL, 5000UL, 1UL << 20}) {
      ASSERT_EQ(ShowRows(Read(path, {}, Small(threads, chunk))), expected)
          << threads << " threads, " << chunk;
    }
  }
}

TEST(Reader, CompressedFilesAreReadAndGoWholeToOnePart) {
  std::mt19937 random(6);
  const TemporaryFolder folder;
  std::string uri;
  for (int file = 0; file < 4; ++file) {
    uri += (file > 0 ? ";" : "") +
           folder.Write(fmt::format("f{}.gz", file), Gzip(NumberedRows(random, file * 25, 25)));
  }
  for (const int threads : {1, 3}) EXPECT_EQ(Labels(Read(uri, {}, Small(threads))), UpTo(100));
  const std::vector<Block> parts = Parts(uri, 3);
  for (const Block& part : parts) EXPECT_EQ(part.rows() % 25, 0U);
  EXPECT_EQ(Labels(parts), UpTo(100));
}

TEST(Reader, AShuffleKeepsRowsAndChangesTheirOrderByTheSeedAlone) {
  std::mt19937 random(7);
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", NumberedRows(random, 0, 500));
  const auto once = Labels(Read(path + "?shuffle=1", {}, Small(1)));
  EXPECT_EQ(Labels(Read(path + "?shuffle=1", {}, Small(3))), once);
  EXPECT_NE(Labels(Read(path + "?shuffle=2", {}, Small(1))), once);
  EXPECT_NE(once, UpTo(500));
  auto sorted = once;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, UpTo(500));
}

TEST(Reader, ABadRowStopsItWithFileLineAndColumn) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 200; ++row) text += fmt::format("{} 1:2\r\n", row);
  const std::string path = folder.Write("bad", text + "1 1:2 x:3 2:1\n" + text);
  for (const int threads : {1, 3}) {
    EXPECT_EQ(ReaderError(path, Small(threads)),
              path + ":201:7: found 'x:3', expected index:value or an index alone");
  }
}

TEST(Reader, AfterAnErrorThereIsNoGoingOn) {
  const TemporaryFolder folder;
  const std::string path =
      folder.Write("bad", "1 1:1\n" + std::string(20, '\n') + "1 x\n" + std::string(100, '\n') + "1 1:1\n");
  for (const int threads : {1, 2}) {
    Reader<std::uint32_t> reader(ParseDataUri(path), {}, Small(threads, 10));
    Block block;
    EXPECT_TRUE(reader.Next(block));
    EXPECT_THROW(reader.Next(block), DataError);
    EXPECT_THROW(reader.Next(block), DataError);
  }
}

TEST(Reader, BadRowsCanBeLeftOutAndAreCountedAndDescribed) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 300; ++row) text += row % 10 == 3 ? "bad\n" : fmt::format("{} 1:2\n", row);
  const std::string path = folder.Write("some.bad", text);
  for (const int threads : {1, 3}) {
    BadRows bad_rows;
    const Block block =
        ReadAll<std::uint32_t>(ParseDataUri(path + "?bad_rows=skip"), {}, Small(threads), &bad_rows);
    EXPECT_EQ(block.rows(), 270U);
    EXPECT_EQ(bad_rows.count, 30U);
    EXPECT_THAT(bad_rows.first, SizeIs(10));
    EXPECT_THAT(bad_rows.first[1], HasSubstr(path + ":14:1: found 'bad', expected label"));
  }
}

TEST(Reader, ABadRowOfAStreamNamesItsFileWhicheverThreadMeetsIt) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 400; ++row) text += "1 1:1\n";
  const std::string plain = folder.Write("a", text);
  const std::string path = folder.Write("b.gz", Gzip(text + "1 x\n"));
  for (const int threads : {1, 3, 4, 7}) {
    EXPECT_THAT(ReaderError(plain + ";" + path, Small(threads)),
                ::testing::StartsWith(path + ":401:3: found 'x'"));
  }
}

TEST(Reader, ADataSetMayHaveMoreFilesThanAProcessMayOpen) {
  const TemporaryFolder folder;
  for (int file = 0; file < 300; ++file)
    folder.Write(fmt::format("set/{:03}", file), fmt::format("{}\n", file));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 100;
  setrlimit(RLIMIT_NOFILE, &few);
  EXPECT_EQ(Labels(Read(folder / "set", {}, Small(4))), UpTo(300));
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(Reader, AShuffleKeepsQueriesWhole) {
  std::mt19937 random(10);
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", NumberedRows(random, 0, 500, true));
  const auto count = [](const Block& block) {
    std::size_t queries = 0;
    for (std::size_t i = 0; i < block.rows(); ++i)
      queries += i == 0 || block.qids[i] != block.qids[i - 1] ? 1 : 0;
    return queries;
  };
  EXPECT_EQ(count(Read(path + "?shuffle=3")), count(Read(path)));
}

TEST(Reader, AQueryIsOneHoweverItsNumberIsWritten) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 100; ++row)
    text += fmt::format("1 qid:{}{} 1:1\n", row % 3 == 0 ? "00" : "", row / 9);
  EXPECT_THAT(Queries(Parts(folder.Write("a", text), 7)), SizeIs(12));
}

TEST(Reader, ARowOfAnotherKindIsOneBadRowWhereverTheChunksBegin) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 200; ++row) text += row == 100 ? "1 1:1\n" : fmt::format("1 qid:{} 1:1\n", row);
  const std::string path = folder.Write("a", "# ranking\n" + text);
  for (const std::size_t chunk : {1UL, 50UL, 777UL, 1UL << 20}) {
    for (const int threads : {1, 3}) {
      BadRows bad_rows;
      ReadAll<std::uint32_t>(ParseDataUri(path + "?bad_rows=skip"), {}, Small(threads, chunk), &bad_rows);
      EXPECT_EQ(bad_rows.count, 1U) << chunk;
      EXPECT_THAT(bad_rows.first, ElementsAre(HasSubstr(path + ":102:3: found '1:1', expected qid:n")));
    }
  }
}

TEST(Reader, ALinkThatLeadsNowhereIsAnErrorNotAFileLess) {
  const TemporaryFolder folder;
  folder.Write("set/a", "1\n");
  std::filesystem::create_symlink("nowhere", folder / "set/b");
  EXPECT_THAT(ReaderError(folder / "set"), HasSubstr("set/b: looking for it failed"));
}

TEST(Reader, RowsWithAndWithoutQueriesDoNotMixAcrossFiles) {
  const TemporaryFolder folder;
  const std::string with = folder.Write("with", "1 qid:1 1:1\n");
  const std::string without = folder.Write("without", "1 1:1\n");
  for (const int threads : {1, 2}) {
    Reader<std::uint32_t> reader(ParseDataUri(with + ";" + without), {}, Small(threads));
    Block block;
    EXPECT_TRUE(reader.Next(block));
    EXPECT_THROW(reader.Next(block), DataError);
  }
}

TEST(Reader, CsvHeadersAndByteOrderMarksAreNoRows) {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a.csv", "\xEF\xBB\xBFlabel,x\n1,5\n");
  const std::string b = folder.Write("b.csv", "label,x\r\n2,6\r\n");
  EXPECT_EQ(ShowRows(Read(a + ";" + b + "?format=csv&label_column=0&header=1")),
            "1 0:5\n2 0:6\ncolumns=1 least=0");
  EXPECT_EQ(Labels(Read(folder.Write("bom",
                                     "\xEF\xBB\xBF"
                                     "1\n2\n"))),
            (std::vector<float>{1, 2}));
}

TEST(Reader, TheFirstRowOfAllDecidesHowWideCsvIs) {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a.csv", "\n1,2\n");
  const std::string b = folder.Write("b.csv", "1,2,3\n4,5\n");
  const std::string uri = a + ";" + b + "?format=csv";
  EXPECT_EQ(ReaderError(uri), b + ":1:5: found '3', expected as many cells as the rows before, 2");
  for (const Block& part : Parts(uri + "&bad_rows=skip", 4)) {
    for (const float value : part.values) EXPECT_NE(value, 3);
  }
}

TEST(Reader, CsvFilesOfDifferentWidthsAreRefusedEvenAsStreams) {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a.gz", Gzip("1,2\n"));
  const std::string b = folder.Write("b.gz", Gzip("1,2,3\n"));
  Reader<std::uint32_t> reader(ParseDataUri(a + ";" + b + "?format=csv"), {}, Small(1));
  Block block;
  EXPECT_TRUE(reader.Next(block));
  EXPECT_THROW(reader.Next(block), DataError);
}

TEST(Reader, AFileThatShrinksWhileItIsReadIsAnError) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 5000; ++row) text += "1 1:1\n";
  const std::string path = folder.Write("a", text);
  Reader<std::uint32_t> reader(ParseDataUri(path), {}, Small(1, 1000));
  Block block;
  EXPECT_TRUE(reader.Next(block));
  std::filesystem::resize_file(path, 600);
  const auto read_on = [&] {
    while (reader.Next(block)) {
    }
  };
  EXPECT_THAT(ErrorOf(read_on), HasSubstr(path));
}

TEST(Reader, ItCanBeLeftInTheMiddle) {
  std::mt19937 random(8);
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", NumberedRows(random, 0, 2000));
  Reader<std::uint32_t> reader(ParseDataUri(path), {}, Small(4));
  Block block;
  EXPECT_TRUE(reader.Next(block));
}

TEST(Reader, ProgressEndsWithAllBytesAndRows) {
  std::mt19937 random(9);
  const TemporaryFolder folder;
  const std::string text = NumberedRows(random, 0, 100);
  const std::string path = folder.Write("a", text);
  for (const int threads : {1, 2}) {
    Progress last;
    ReaderOptions options = Small(threads);
    options.on_progress = [&](const Progress& progress) { last = progress; };
    Read(path, {}, options);
    EXPECT_EQ(last.bytes, text.size());
    EXPECT_EQ(last.bytes_total, text.size());
    EXPECT_EQ(last.rows, 100U);
  }
}

TEST(Reader, NoRowsIsNoError) {
  const TemporaryFolder folder;
  EXPECT_EQ(Read(folder.Write("empty", "")).rows(), 0U);
  EXPECT_EQ(Read(folder.Write("comments", "# nothing\n\n")).rows(), 0U);
}

TEST(Reader, RowsWithLabelsOrWeightsThatNoneCanHaveAreLeftOutAndCounted) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 300; ++row)
    text += row % 10 == 3 ? "nan:1 1:1\n" : row % 10 == 5 ? "1:-1 1:1\n" : fmt::format("{}:1 1:2\n", row);
  const std::string path = folder.Write("some.bad", text);
  for (const int threads : {1, 3}) {
    BadRows bad_rows;
    EXPECT_EQ(
        ReadAll<std::uint32_t>(ParseDataUri(path + "?bad_rows=skip"), {}, Small(threads), &bad_rows).rows(),
        240U);
    ASSERT_EQ(bad_rows.count, 60U);
    EXPECT_EQ(bad_rows.first[1], path + ":6:1: found '1:-1', expected a finite weight of at least 0");
  }
}

TEST(Reader, AQueryThatComesBackInItsFileIsAnError) {
  const TemporaryFolder folder;
  const std::string torn =
      folder.Write("torn", "1 qid:1 0:1\n1 qid:2 0:1\n1 qid:1 0:1\n1 qid:4 0:1\n1 qid:5 0:1\n1 qid:6 0:1\n");
  // The queries of a file may be in any order, and may continue in the next chunk. Other files may have the
  // same query ids.
  const std::string whole =
      folder.Write("whole", "1 qid:7 0:1\n1 qid:2 0:1\n1 qid:2 0:1\n1 qid:2 1:1\n1 qid:3 0:1\n");
  const std::string other = folder.Write("other", "1 qid:7 0:1\n1 qid:3 0:1\n");
  for (const int threads : {1, 3}) {
    EXPECT_EQ(ReaderError(torn, Small(threads, 10)),
              torn + ": the rows of query 1 are not together: sort the file by qid");
    EXPECT_EQ(Read(whole + ";" + other, {}, Small(threads, 10)).rows(), 7U);
  }
}

TEST(Reader, AQueryThatEndsAFileAndBeginsTheNextIsAnError) {
  const TemporaryFolder folder;
  const std::string first = folder.Write("first", "1 qid:7 0:1\n1 qid:3 0:1\n");
  const std::string empty = folder.Write("empty", "# nothing\n");
  const std::string next = folder.Write("next", "1 qid:3 0:1\n1 qid:4 0:1\n");
  for (const int threads : {1, 3}) {
    EXPECT_EQ(ReaderError(first + ";" + empty + ";" + next, Small(threads, 10)),
              next + ": its query 3 comes right after query 3 of " + first +
                  ", and the two would be one query: number the queries of all files differently, or put the "
                  "rows of a query into one file");
    EXPECT_EQ(Read(next + ";" + first, {}, Small(threads, 10)).rows(), 4U);
  }
}

TEST(Reader, AFileThatIsReplacedBeforeItIsOpenedIsAnError) {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a", "1 1:1\n");
  const std::string b = folder.Write("b", "2 1:1\n");
  Reader<std::uint32_t> reader(ParseDataUri(a + ";" + b), {}, Small(1));
  const std::string other = folder.Write("other", "3 1:1\n");
  std::filesystem::last_write_time(other, std::filesystem::last_write_time(b) + std::chrono::seconds(1));
  std::filesystem::rename(other, b);
  Block block;
  EXPECT_TRUE(reader.Next(block));
  EXPECT_THAT(ErrorOf([&] { reader.Next(block); }),
              HasSubstr(b + ": was changed or replaced after the files were listed"));
}

TEST(Reader, AFolderThatMayNotBeReadIsAnErrorOfAPatternNotFilesLess) {
  const TemporaryFolder folder;
  folder.Write("open/a", "1\n");
  folder.Write("closed/b", "2\n");
  namespace fs = std::filesystem;
  fs::permissions(folder / "closed", fs::perms::none);
  const std::string error = ErrorOfNobody([&] { Read(folder / "*/*"); });
  fs::permissions(folder / "closed", fs::perms(0755));
  EXPECT_EQ(error, folder / "*/*" + ": the pattern cannot be expanded: a folder cannot be read");
  EXPECT_EQ(Read(folder / "*/*").rows(), 2U);
}

/// Makes a folder the current one while the object lives.
class CurrentFolder {
 public:
  explicit CurrentFolder(const std::string& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~CurrentFolder() { std::filesystem::current_path(before_); }
  CurrentFolder(const CurrentFolder&) = delete;
  CurrentFolder& operator=(const CurrentFolder&) = delete;

 private:
  std::filesystem::path before_;
};

TEST(Reader, AFileThatIsNamedLikeStandardInputIsReadWhenItsExactNameIsGiven) {
  const TemporaryFolder folder;
  const CurrentFolder here(folder / "");
  folder.Write("-", Gzip("7 0:1\n"));  // a compressed file is read as a stream
  EXPECT_THAT(Labels(ReadAll<std::uint32_t>(DataUriOf({"-"}, ""), {}, Small(1))), ElementsAre(7));
}

TEST(Reader, ExactPathsAreThatFileAloneWhateverCharactersTheyHave) {
  const TemporaryFolder folder;
  folder.Write("x", "8 0:1\n");
  folder.Write("y.svm", "9 0:1\n");
  double label = 0;
  for (const char* name :
       {"x;y.svm", "x?bad_rows=skip", "x#y.svm", "*", "[xy].svm", "?", "-", "s:", "a%20b"}) {
    const std::string path = folder.Write(name, fmt::format("{} 0:1\n", ++label));
    const auto rows = ReadAll<std::uint32_t>(DataUriOf({path}, ""));
    ASSERT_EQ(rows.rows(), 1U) << name;
    EXPECT_EQ(rows.labels[0], label) << name;
  }
  EXPECT_THROW(ReadAll<std::uint32_t>(DataUriOf({folder / "y.sv?"}, "")), DataError);
  EXPECT_THROW(ReadAll<std::uint32_t>(DataUriOf({folder / "x;" + folder / "y.svm"}, "")), DataError);
}

}  // namespace
}  // namespace warren::data
