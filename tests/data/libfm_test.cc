// libfm text: valid rows, the positions of faults in other lines, and reading back what was written.
#include "data/text/libfm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "tests/data/random_tables.h"
#include "tests/data/show_rows.h"

namespace warren::data {
namespace {

/// The parsed rows as text, then a line for each fault with its position and what was expected.
template <typename Index = std::uint32_t>
std::string ParseFm(std::string_view text, FirstIndex first = FirstIndex::kZero) {
  RowBlock<Index> block;
  std::string faults;
  ParseLibFm(text, first, block,
             [&](const Fault& fault) { faults += fmt::format("\n{}: {}", fault.position, fault.expected); });
  return ShowRows(block) + faults;
}

TEST(LibFm, ARowIsALabelAndTriplesOfFieldIndexAndValue) {
  EXPECT_EQ(ParseFm("1 0:3:0.5 2:7:-1e-3\n-0.5 1:1:4\n"),
            "1 0/3:0.5 2/7:-0.00100000005\n"
            "-0.5 1/1:4\n"
            "columns=8 least=1");
}

TEST(LibFm, APairIsAFieldAndAnIndexWithTheValueOne) {
  EXPECT_EQ(ParseFm("1 4:3 2:7:2"), "1 4/3:1 2/7:2\ncolumns=8 least=3");
}

TEST(LibFm, ALabelMayCarryAWeightAndRowsWithoutWeighOne) {
  EXPECT_EQ(ParseFm("1:0.25 0:1\n0 0:2\n1:3\n"),
            "1 weight=0.25 0/1:1\n0 weight=1 0/2:1\n1 weight=3\ncolumns=3 least=1");
  EXPECT_EQ(ParseFm("0 0:1\n1:2\n"), "0 weight=1 0/1:1\n1 weight=2\ncolumns=2 least=1");
}

TEST(LibFm, ARowMayHaveNoEntries) {
  EXPECT_EQ(ParseFm("3\n4"), "3\n4\ncolumns=0");
}

TEST(LibFm, BlanksTabsCommentsAndEmptyLinesAreFree) {
  EXPECT_EQ(ParseFm("\n  \t\n# all comment\n \t1\t 0:1:2  # 3:4:5\n2#x\n   # 1 2\n0 1:1:1#\n"),
            "1 0/1:2\n2\n0 1/1:1\ncolumns=2 least=1");
}

TEST(LibFm, LinesEndInLineFeedCarriageReturnOrBothAndTheLastNeedsNone) {
  const std::string rows = "1 0/1:2\n2 0/2:3\ncolumns=3 least=1";
  for (const char* text : {"1 0:1:2\n2 0:2:3\n", "1 0:1:2\r\n2 0:2:3\r\n", "1 0:1:2\r2 0:2:3\r",
                           "1 0:1:2\n2 0:2:3", "1 0:1:2\n\r\n\r2 0:2:3 \r\n"}) {
    EXPECT_EQ(ParseFm(text), rows);
  }
}

TEST(LibFm, NoTextIsNoRows) {
  EXPECT_EQ(ParseFm(""), "columns=0");
  EXPECT_EQ(ParseFm("\n\r\n"), "columns=0");
}

TEST(LibFm, FieldsAndIndicesThatCountFromOneAreMadeToCountFromZero) {
  EXPECT_EQ(ParseFm("1 1:1:5 3:9:6", FirstIndex::kOne), "1 0/0:5 2/8:6\ncolumns=9 least=0");
  EXPECT_EQ(ParseFm("1 2:0:5\n2 0:2:5\n3 1:1\n", FirstIndex::kOne),
            "3 0/0:1\ncolumns=1 least=0\n"
            "2: an index of 1 or more (indexing_mode=1)\n"
            "10: a field of 1 or more (indexing_mode=1)");
}

TEST(LibFm, NumbersAreThoseOfTheOtherFormats) {
  EXPECT_EQ(ParseFm("+1 0:1:nan 0:2:-inf 0:3:INFINITY 0:4:1e-50 0:5:.5"),
            "1 0/1:nan 0/2:-inf 0/3:inf 0/4:0 0/5:0.5\ncolumns=6 least=1");
}

TEST(LibFm, EntriesKeepTheOrderOfTheText) {
  EXPECT_EQ(ParseFm("1 2:9 1:3 1:4"), "1 2/9:1 1/3:1 1/4:1\ncolumns=10 least=3");
}

TEST(LibFm, AnIndexTwiceInARowIsABadRow) {
  EXPECT_EQ(ParseFm("1 2:9 1:3 2:9\n0 1:3:2 2:3:4\n1 1:3\n"),
            "1 1/3:1\ncolumns=4 least=3\n10: each index once in a row\n22: each index once in a row");
}

TEST(LibFm, FieldsAndIndicesGoAsFarAsTheirTypeLeavesRoomForTheNumberOfColumns) {
  const std::string too_far = " up to 4294967294 (64-bit indices go further)";
  EXPECT_EQ(ParseFm("1 4294967294:4294967294:2"),
            "1 4294967294/4294967294:2\ncolumns=4294967295 least=4294967294");
  EXPECT_EQ(ParseFm("1 0:4294967295"), "columns=0\n2: an index" + too_far);
  EXPECT_EQ(ParseFm("1 4294967295:0"), "columns=0\n2: a field" + too_far);
  EXPECT_EQ(ParseFm("1 4294967295:4294967295", FirstIndex::kOne),
            "1 4294967294/4294967294:1\ncolumns=4294967295 least=4294967294");

  EXPECT_EQ(ParseFm<std::uint64_t>("1 4294967296:18446744073709551614:2"),
            "1 4294967296/18446744073709551614:2\ncolumns=18446744073709551615 least=18446744073709551614");
  EXPECT_EQ(ParseFm<std::uint64_t>("1 0:18446744073709551615"),
            "columns=0\n2: an index up to 18446744073709551614");
  EXPECT_EQ(ParseFm<std::uint64_t>("1 0:18446744073709551616"),
            "columns=0\n2: field:index:value or field:index");
}

TEST(LibFm, AWordThatIsNoTripleIsNamedWithItsPlace) {
  const std::string form = "field:index:value or field:index";
  const std::string value = "field:index:value with a decimal number as value";
  const auto fault = [](std::size_t position, const std::string& expected) {
    return fmt::format("columns=0\n{}: {}", position, expected);
  };
  EXPECT_EQ(ParseFm("1 0:1 7"), fault(6, form));
  EXPECT_EQ(ParseFm("1 :1"), fault(2, form));
  EXPECT_EQ(ParseFm("1 1:"), fault(2, form));
  EXPECT_EQ(ParseFm("1 ::"), fault(2, form));
  EXPECT_EQ(ParseFm("1 1::2"), fault(2, form));
  EXPECT_EQ(ParseFm("1 a:1:2"), fault(2, form));
  EXPECT_EQ(ParseFm("1 1:0x2:2"), fault(2, form));
  EXPECT_EQ(ParseFm("1 -1:1:2"), fault(2, form));
  EXPECT_EQ(ParseFm("1 1:+1:2"), fault(2, form));
  EXPECT_EQ(ParseFm("1 1.0:1:2"), fault(2, form));
  EXPECT_EQ(ParseFm("1 qid:1"), fault(2, form));
  EXPECT_EQ(ParseFm("1 1:2:"), fault(2, value));
  EXPECT_EQ(ParseFm("1 1:2:x"), fault(2, value));
  EXPECT_EQ(ParseFm("1 1:2:3:4"), fault(2, value));
  EXPECT_EQ(ParseFm("1 1:2: 3"), fault(2, value));
  EXPECT_EQ(ParseFm("1 1:2:1,5"), fault(2, value));
}

TEST(LibFm, ALabelThatIsNoneIsNamedWithItsPlace) {
  const std::string label = "label or label:weight, both of them decimal numbers";
  EXPECT_EQ(ParseFm("\n x 0:1"), "columns=0\n2: " + label);
  EXPECT_EQ(ParseFm("1,2 0:1"), "columns=0\n0: " + label);
  EXPECT_EQ(ParseFm(":1 0:1"), "columns=0\n0: " + label);
  EXPECT_EQ(ParseFm(std::string_view("1\0 0:1", 6)), "columns=0\n0: " + label);
  EXPECT_EQ(ParseFm("1: 0:1"), "columns=0\n0: label:weight, both of them decimal numbers");
  EXPECT_EQ(ParseFm("0:3:0.5"), "columns=0\n0: label:weight, both of them decimal numbers");
}

TEST(LibFm, ALabelOrAWeightThatNoRowCanBeTrainedOnWithIsABadRow) {
  const std::string label = "a label that is not nan and within the range of a float";
  const std::string weight = "a finite weight of at least 0";
  for (const char* text : {"nan 0:1", "1e39", "nan:1 0:1"})
    EXPECT_EQ(ParseFm(text), "columns=0\n0: " + label);
  for (const char* text : {"1:nan", "1:-1 0:1", "1:inf"}) EXPECT_EQ(ParseFm(text), "columns=0\n0: " + weight);
}

TEST(LibFm, ARowThatIsNoneLeavesNoTrace) {
  const std::string good = "1 2:3:4\n\n0 5:6\n";
  const std::string rows = "1 2/3:4\n0 5/6:1\ncolumns=7 least=3";
  for (const std::string bad : {"x 9:9", "1:9 9:9:9 0:0 x", "1:9 0:9 9:0:z", "2 9:9:9 8:8:8 7"}) {
    const auto rows_of = [](const std::string& text) {
      const std::string all = ParseFm(text);
      return all.substr(0, all.find('\n', all.find("columns=")));
    };
    EXPECT_EQ(rows_of(fmt::format("{}\n{}", bad, good)), rows);
    EXPECT_EQ(rows_of(fmt::format("1 2:3:4\n{}\n0 5:6\n", bad)), rows);
    EXPECT_EQ(rows_of(good + bad), rows);
    EXPECT_EQ(rows_of(fmt::format("{0}\n{0}", bad)), "columns=0");
  }
}

TEST(LibFm, EachBadRowIsToldOnceAtItsFirstBadWord) {
  EXPECT_EQ(ParseFm("a b c\n1 0:0\n2 x y\n"),
            "1 0/0:1\ncolumns=1 least=0\n"
            "0: label or label:weight, both of them decimal numbers\n"
            "14: field:index:value or field:index");
}

TEST(LibFm, WhatTheHandlerThrowsArrivesAndTheRowsBeforeAreWhole) {
  RowBlock<std::uint32_t> block;
  const auto stop = [](const Fault& fault) { throw DataError(fault.expected); };
  EXPECT_THROW(ParseLibFm("1 0:1\n2 0:x\n3 0:3\n", FirstIndex::kZero, block, stop), DataError);
  EXPECT_EQ(ShowRows(block), "1 0/1:1\ncolumns=2 least=1");
}

TEST(LibFm, RowsAreAddedBehindThoseOfTheBlock) {
  RowBlock<std::uint32_t> block;
  const auto none = [](const Fault& fault) { FAIL() << fault.expected; };
  ParseLibFm("1 0:5\n", FirstIndex::kZero, block, none);
  ParseLibFm("2:0.5 1:2:3\n", FirstIndex::kZero, block, none);
  EXPECT_EQ(ShowRows(block), "1 weight=1 0/5:1\n2 weight=0.5 1/2:3\ncolumns=6 least=2");
}

class LibFmTables : public RandomTables {
 protected:
  /// Adds a random row to `block` and to `text`.
  template <typename Index>
  void AddRow(bool weighted, std::uint64_t first, RowBlock<Index>& block, std::string& text) {
    if (block.offsets.empty()) block.offsets.push_back(0);
    block.labels.push_back(AnyFloat());
    text += fmt::format("{}{:.9g}", OneOf({"", "", " ", "\t"}), block.labels.back());
    if (weighted) {
      block.weights.push_back(std::fabs(AnyFloat()));
      text += fmt::format(":{:.9g}", block.weights.back());
    }
    std::set<Index> seen;
    for (std::uint64_t left = Below(6); left > 0; --left) {
      const Index field = AnyIndex<Index>();
      Index index = AnyIndex<Index>();
      while (!seen.insert(index).second) index = AnyIndex<Index>();
      const bool has_value = Below(4) > 0;
      block.fields.push_back(field);
      block.indices.push_back(index);
      block.values.push_back(has_value ? AnyFloat() : 1.0F);
      block.columns = std::max<std::uint64_t>(block.columns, std::uint64_t{index} + 1);
      block.least_index = std::min(block.least_index, index);
      text += fmt::format("{}{}:{}", OneOf({" ", "  ", "\t"}), field + first, index + first);
      if (has_value) text += fmt::format(":{:.9g}", block.values.back());
    }
    block.offsets.push_back(block.indices.size());
    text += fmt::format("{}{}", OneOf({"", " ", " # 1:2:3", "#"}), OneOf({"\n", "\r\n", "\r", "\n\n"}));
  }

  template <typename Index>
  void ExpectReadBack() {
    for (int table = 0; table < 500; ++table) {
      const bool weighted = Below(2) == 0;
      const auto first = static_cast<FirstIndex>(Below(2));
      RowBlock<Index> written;
      std::string text;
      for (std::uint64_t left = Below(20); left > 0; --left) {
        AddRow(weighted, static_cast<std::uint64_t>(first), written, text);
      }
      RowBlock<Index> read;
      ParseLibFm(text, first, read, [&](const Fault& fault) { FAIL() << Describe("text", 0, text, fault); });
      ASSERT_EQ(ShowRows(read), ShowRows(written)) << text;
    }
  }

 private:
  /// Short and long indices are equally likely.
  template <typename Index>
  Index AnyIndex() {
    // Shifted by at least 1, since the greatest 64-bit index would overflow if counted from 1.
    const std::uint64_t most = std::uint64_t{Index(-1)} >> (1 + Below(sizeof(Index) * 8 - 1));
    return static_cast<Index>(Below(most + 1));
  }
};

TEST_F(LibFmTables, AreReadBackAsTheyWereWritten) {
  ExpectReadBack<std::uint32_t>();
}

TEST_F(LibFmTables, AreReadBackAsTheyWereWrittenWith64BitIndices) {
  ExpectReadBack<std::uint64_t>();
}

}  // namespace
}  // namespace warren::data
