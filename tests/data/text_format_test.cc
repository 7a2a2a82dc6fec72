// The registry of text formats: the built-in formats are complete, and two formats that this test registers
// are read like them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/cache/pages.h"
#include "data/reader.h"
#include "data/text/format.h"
#include "data/text/number.h"
#include "data/text/option_value.h"
#include "data/text/registry.h"
#include "data/text/row_parser.h"
#include "data/uri.h"
#include "tests/data/error_of.h"
#include "tests/temporary_folder.h"

namespace warren::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

using Block = RowBlock<std::uint32_t>;

// --- "semicolon": label;value on each line, '%' begins a comment, the option scale multiplies values ---

int ScaleOf(const TextOptions& options) {
  const auto found = options.of_format.find("scale");
  return found == options.of_format.end() ? 1 : std::stoi(found->second);
}

template <typename Index>
void ReadSemicolonRow(std::string_view text, std::string_view row, int scale,
                      internal::RowWriter<Index>& writer) {
  if (row.empty() || row.front() == '%') return;
  const auto number = [&](std::string_view word) {
    float value = 0;
    if (ParseFloat(word.data(), word.data() + word.size(), value)) return value;
    throw internal::BadRow{{static_cast<std::size_t>(word.data() - text.data()), "label;value"}};
  };
  const std::size_t semicolon = std::min(row.find(';'), row.size());
  writer.Begin();
  writer.AddLabel(number(row.substr(0, semicolon)));
  writer.AddEntry(0, static_cast<float>(scale) * number(row.substr(std::min(semicolon + 1, row.size()))));
  writer.End();
}

RowParser SemicolonParser(const TextOptions& options, std::string_view /*first_row*/) {
  return RowParser(
      [scale = ScaleOf(options)](std::string_view text, auto& block, const FaultHandler& on_fault) {
        internal::RowWriter writer(block);
        internal::ReadLines(text, writer, on_fault, [&](const char* begin, const char* end) {
          ReadSemicolonRow(text, {begin, end}, scale, writer);
        });
      });
}

constexpr FormatOption kSemicolonOptions[] = {
    {"scale",
     [](TextOptions& options, std::string_view key, std::string_view value) {
       WholeNumber(key, value, 1, 1000);
       options.of_format.insert_or_assign(std::string(key), std::string(value));
     },
     [](const TextOptions& options) { return std::to_string(ScaleOf(options)); }},
};

constexpr TextFormat kSemicolon{.name = "semicolon",
                                .parser = SemicolonParser,
                                .comment = '%',
                                .fixed_columns = true,
                                .options = kSemicolonOptions};

// --- "stroke": query,label, with '|' after each row instead of a line end; shares an option key with CSV ---

QueryOf StrokeQueries(const TextOptions& /*options*/, std::string_view /*first_row*/) {
  return [](std::string_view row) { return std::optional(std::string(row.substr(0, row.find(',')))); };
}

RowParser StrokeParser(const TextOptions& /*options*/, std::string_view first_row) {
  return RowParser([first = std::string(first_row)](std::string_view text, auto& block,
                                                    const FaultHandler& /*on_fault*/) {
    EXPECT_TRUE(text.empty() || first == "0,0") << "the first row of the data set, whatever share is read";
    internal::RowWriter writer(block);
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      const std::size_t end = std::min(text.find('|'), text.size());
      std::uint64_t query = 0;
      float label = 0;
      EXPECT_TRUE(ParseUnsigned(text.data(), text.data() + comma, 1000, query));
      EXPECT_TRUE(ParseFloat(text.data() + comma + 1, text.data() + end, label));
      writer.Begin();
      writer.AddLabel(label);
      writer.SetQid(query);
      writer.End();
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  });
}

constexpr FormatOption kStrokeOptions[] = {
    {"delimiter",
     [](TextOptions& options, std::string_view key, std::string_view value) {
       options.of_format.insert_or_assign(std::string(key),
                                          OneOf<std::string>(key, value, {{"comma", "comma"}}));
     },
     [](const TextOptions& options) { return std::to_string(options.of_format.size()); }},
};

constexpr TextFormat kStroke{.name = "stroke",
                             .parser = StrokeParser,
                             .queries = StrokeQueries,
                             .row_ends = RowEnds("|"),
                             .options = kStrokeOptions};

class TextFormatTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const Format kRegistered[] = {RegisterTextFormat(kSemicolon), RegisterTextFormat(kStroke)};
    ASSERT_EQ(Name(kRegistered[0]), "semicolon");
  }

  static Block Read(const std::string& uri, Share share = {}, std::size_t chunk_bytes = 64, int threads = 2) {
    ReaderOptions options;
    options.threads = threads;
    options.chunk_bytes = chunk_bytes;
    return ReadAll<std::uint32_t>(ParseDataUri(uri), share, options);
  }

  static std::vector<float> ToVector(const Array<float>& array) { return {array.begin(), array.end()}; }

  const TemporaryFolder folder_;
};

TEST_F(TextFormatTest, EveryRowOfTheRegistryIsComplete) {
  std::vector<std::string_view> names;
  for (const TextFormat* const format : TextFormats()) {
    SCOPED_TRACE(format->name);
    EXPECT_THAT(names, Not(Contains(format->name)));
    names.push_back(format->name);
    EXPECT_FALSE(format->row_ends.empty());
    EXPECT_TRUE(format->row_ends.Has(format->row_ends.Any()));
    const TextOptions options = ParseDataUri(fmt::format("x?format={}", format->name)).options;
    EXPECT_EQ(&TextFormatOf(options.format), format);
    EXPECT_EQ(Name(options.format), format->name);
    EXPECT_THAT(DescribeFormat(options), HasSubstr(std::string(format->name)));
    for (const FormatOption& option : format->options) {
      EXPECT_THAT(DataUriKeys(), Contains(option.key));
      EXPECT_THAT(DescribeFormat(options),
                  HasSubstr(fmt::format(", {} {}", option.key, option.get(options))));
      EXPECT_THAT(ErrorOf([&] { ParseDataUri(fmt::format("x?format={}&{}=", format->name, option.key)); }),
                  HasSubstr(fmt::format("{}=: expected", option.key)));
    }
    // Empty text has no rows, for indices of either width.
    const RowParser parser = format->parser(options, "");
    const FaultHandler no_fault = [](const Fault& fault) { ADD_FAILURE() << fault.expected; };
    RowBlock<std::uint32_t> narrow;
    parser("", narrow, no_fault);
    EXPECT_TRUE(narrow.empty());
    RowBlock<std::uint64_t> wide;
    parser("", wide, no_fault);
    EXPECT_TRUE(wide.empty());
  }
  EXPECT_THAT(names, ElementsAre("libsvm", "libfm", "csv", "semicolon", "stroke"));
}

TEST_F(TextFormatTest, AFormatThatIsAddedIsReadInShares) {
  constexpr int kRows = 1000;
  std::string text = "% label;value\n\n";
  for (int row = 0; row < kRows; ++row) text += fmt::format("{};{}.5\n", row, row % 7);
  const std::string uri = folder_.Write("a", text) + "?format=semicolon";
  for (const std::size_t chunk_bytes : {std::size_t{64}, std::size_t{1} << 20}) {
    Block all = Read(uri, {0, 2}, chunk_bytes);
    EXPECT_GT(all.rows(), kRows / 3);
    EXPECT_LT(all.rows(), 2 * kRows / 3);
    all.Append(Read(uri, {1, 2}, chunk_bytes).View());
    ASSERT_EQ(all.rows(), kRows);
    EXPECT_EQ(all.columns, 1U);
    for (std::size_t row = 0; row < all.rows(); ++row) {
      ASSERT_EQ(all.labels[row], static_cast<float>(row));
      ASSERT_EQ(all.values[row], static_cast<float>(row % 7) + 0.5F);
    }
  }
}

TEST_F(TextFormatTest, WhatIsWrongInItIsNamedByFileLineAndColumn) {
  const std::string path = folder_.Write("a", "1;2\n3;x\n");
  EXPECT_EQ(ErrorOf([&] { Read(path + "?format=semicolon"); }),
            path + ":2:3: found 'x', expected label;value");
  EXPECT_THAT(ToVector(Read(path + "?format=semicolon&bad_rows=skip").labels), ElementsAre(1));
}

TEST_F(TextFormatTest, ItHasOptionsOfItsOwn) {
  const std::string path = folder_.Write("a", "1;2\n");
  EXPECT_THAT(ToVector(Read(path + "?scale=10&format=semicolon").values), ElementsAre(20));
  EXPECT_THAT(ErrorOf([&] { Read(path + "?format=semicolon&scale=0"); }),
              HasSubstr("scale=0: expected a whole number from 1 to 1000"));
}

TEST_F(TextFormatTest, AKeyOfTwoFormatsBelongsToTheOneAskedForWhereverItStands) {
  const TextOptions options = ParseDataUri("x?delimiter=comma&format=stroke").options;
  EXPECT_THAT(options.of_format, ElementsAre(Pair("delimiter", "comma")));
  EXPECT_THAT(ErrorOf([] { ParseDataUri("x?format=csv&delimiter=comma"); }),
              HasSubstr("expected one character"));
}

TEST_F(TextFormatTest, MessagesListIt) {
  EXPECT_THAT(ErrorOf([] { ParseDataUri("x?format=svm"); }),
              HasSubstr("expected one of csv, libfm, libsvm, semicolon, stroke"));
  EXPECT_THAT(ErrorOf([] { ParseDataUri("x?scall=1"); }), HasSubstr("qid_column, scale, shuffle"));
}

TEST_F(TextFormatTest, RowsEndAndQueriesStayTogetherAsTheFormatSays) {
  constexpr int kRows = 300;
  std::string text;
  for (int row = 0; row < kRows; ++row) text += fmt::format("{},{}|", row / 9, row);
  text.pop_back();
  const std::string path = folder_.Write("a", text);
  for (const char* const options : {"?format=stroke", "?format=stroke&shuffle=1"}) {
    std::vector<float> labels;
    std::vector<std::uint64_t> queries_before;
    for (int part = 0; part < 3; ++part) {
      const Block block = Read(path + options, {part, 3});
      for (const std::uint64_t query : block.qids)
        EXPECT_THAT(queries_before, Not(Contains(query))) << "in two shares";
      queries_before.assign(block.qids.begin(), block.qids.end());
      labels.insert(labels.end(), block.labels.begin(), block.labels.end());
    }
    std::sort(labels.begin(), labels.end());
    ASSERT_THAT(labels, SizeIs(kRows));
    for (int row = 0; row < kRows; ++row) ASSERT_EQ(labels[static_cast<std::size_t>(row)], row);
  }
}

TEST_F(TextFormatTest, ACacheOfOneFormatOrOptionIsNotTakenForThatOfAnother) {
  const std::string path = folder_.Write("a", "1\n2\n");  // only labels for LibSVM and libfm, values for CSV
  const auto read = [&](const std::string& path_and_options, std::vector<std::string>& stale) {
    PageOptions options;
    options.on_stale_cache = [&](const std::string& why) { stale.push_back(why); };
    Pages<std::uint32_t> pages(ParseDataUri(path_and_options + "#" + folder_ / "cache"), {}, options);
    RowView<std::uint32_t> page;
    EXPECT_TRUE(pages.Next(page));
    return fmt::format("{} {}", fmt::join(page.labels, ","), fmt::join(page.values, ","));
  };
  std::vector<std::string> stale;
  EXPECT_EQ(read(path, stale), "1,2 ");
  EXPECT_THAT(stale, IsEmpty());
  EXPECT_EQ(read(path + "?format=libfm", stale), "1,2 ");
  EXPECT_THAT(stale, SizeIs(1));
  EXPECT_EQ(read(path + "?format=csv", stale), "0,0 1,2");
  EXPECT_THAT(stale, SizeIs(2));
  const std::string semicolons = folder_.Write("b", "1;2\n");
  EXPECT_EQ(read(semicolons + "?format=semicolon", stale), "1 2");
  EXPECT_THAT(stale, SizeIs(3));
  EXPECT_EQ(read(semicolons + "?format=semicolon&scale=3", stale), "1 6");
  EXPECT_THAT(stale, SizeIs(4));
  EXPECT_EQ(read(semicolons + "?format=semicolon&scale=3", stale), "1 6");
  EXPECT_THAT(stale, SizeIs(4));
}

TEST_F(TextFormatTest, AnIncompleteOneOrASecondOneOfANameIsRefused) {
  static constexpr TextFormat kWithoutParser{.name = "without_parser"};
  static constexpr FormatOption kWithoutGet[] = {{"key", kSemicolonOptions[0].set}};
  static constexpr TextFormat kWithoutGetOfAnOption{
      .name = "without_get", .parser = SemicolonParser, .options = kWithoutGet};
  static constexpr TextFormat kWithoutRowEnds{
      .name = "without_row_ends", .parser = SemicolonParser, .row_ends = RowEnds("")};
  static constexpr TextFormat kWithoutName{.name = "", .parser = SemicolonParser};
  const auto error_of = [](const TextFormat& format) { return ErrorOf([&] { RegisterTextFormat(format); }); };
  EXPECT_THAT(error_of(kWithoutParser), HasSubstr("text format 'without_parser': has no parser"));
  EXPECT_THAT(error_of(kWithoutGetOfAnOption), HasSubstr("has no set or get of 'key'"));
  EXPECT_THAT(error_of(kWithoutRowEnds), HasSubstr("has no row ends"));
  EXPECT_THAT(error_of(kWithoutName), HasSubstr("has no name"));
  EXPECT_THAT(error_of(kSemicolon),
              HasSubstr("text format 'semicolon': a format of that name already exists"));
  EXPECT_THAT(ErrorOf([] { Name(static_cast<Format>(200)); }), AllOf(HasSubstr("200"), HasSubstr("5 are")));
}

}  // namespace
}  // namespace warren::data
