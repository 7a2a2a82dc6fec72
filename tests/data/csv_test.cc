// CSV tables: cells and rows, the positions of errors in malformed text, and reading back what was written.
#include "data/text/csv.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/data/error_of.h"
#include "tests/data/random_tables.h"
#include "tests/data/show_rows.h"

namespace warren::data {
namespace {

/// The parsed rows as text, then a line for each fault with its position and what was expected.
template <typename Index = std::uint32_t>
std::string ParseTable(std::string_view text, const CsvOptions& options = {}) {
  RowBlock<Index> block;
  std::string faults;
  ParseCsv(text, options, block,
           [&](const Fault& fault) { faults += fmt::format("\n{}: {}", fault.position, fault.expected); });
  return ShowRows(block) + faults;
}

/// The output of ParseTable for text without rows and with one fault.
std::string OneFault(std::size_t position, const std::string& expected) {
  return fmt::format("columns=0\n{}: {}", position, expected);
}

TEST(Csv, ARowIsALineOfNumbers) {
  EXPECT_EQ(ParseTable("1,2.5,-3e2\n4,5,+.5\n"), "0 0:1 1:2.5 2:-300\n0 0:4 1:5 2:0.5\ncolumns=3 least=0");
}

TEST(Csv, TheLabelColumnIsTakenOutAndTheOthersAreNumberedInOrder) {
  EXPECT_EQ(ParseTable("7,1,2\n", {.label_column = 0}), "7 0:1 1:2\ncolumns=2 least=0");
  EXPECT_EQ(ParseTable("1,7,2\n", {.label_column = 1}), "7 0:1 1:2\ncolumns=2 least=0");
  EXPECT_EQ(ParseTable("1,2,7\n", {.label_column = 2}), "7 0:1 1:2\ncolumns=2 least=0");
}

TEST(Csv, SoAreTheWeightAndTheQueryIdColumn) {
  EXPECT_EQ(ParseTable("10,0.5,11,18446744073709551615,12,1\n20,2,21,0,22,0\n",
                       {.label_column = 5, .weight_column = 1, .qid_column = 3}),
            "1 weight=0.5 qid=18446744073709551615 0:10 1:11 2:12\n"
            "0 weight=2 qid=0 0:20 1:21 2:22\n"
            "columns=3 least=0");
  EXPECT_EQ(ParseTable("0.5,3\n", {.weight_column = 0}), "0 weight=0.5 0:3\ncolumns=1 least=0");
  EXPECT_EQ(ParseTable("3,9\n", {.qid_column = 1}), "0 qid=9 0:3\ncolumns=1 least=0");
}

TEST(Csv, ATableMayHaveNoFeatures) {
  EXPECT_EQ(ParseTable("7\n8\n", {.label_column = 0}), "7\n8\ncolumns=0");
  EXPECT_EQ(ParseTable("7\n8,1\n9\n", {.label_column = 0}),
            "7\n9\ncolumns=0\n4: as many cells as the rows before, 1");
}

TEST(Csv, AnEmptyCellIsMissingAndKeepsItsColumn) {
  EXPECT_EQ(ParseTable("1,,3\n,5,\n,,\n"), "0 0:1 2:3\n0 1:5\n0\ncolumns=3 least=0");
  EXPECT_EQ(ParseTable("1, \t ,3\n"), "0 0:1 2:3\ncolumns=3 least=0");
  EXPECT_EQ(ParseTable("1,\"\",3\n"), "0 0:1 2:3\ncolumns=3 least=0");
}

TEST(Csv, ColumnsAreCountedEvenWhenNoRowHasAValueInTheLast) {
  EXPECT_EQ(ParseTable("1,2,,\n3,4,,\n"), "0 0:1 1:2\n0 0:3 1:4\ncolumns=4 least=0");
  EXPECT_EQ(ParseTable(",,\n"), "0\ncolumns=3");
  EXPECT_EQ(ParseTable(",1\n"), "0 1:1\ncolumns=2 least=1");
}

TEST(Csv, NanIsAValueAndNotMissing) {
  EXPECT_EQ(ParseTable("nan,,-inf,Infinity\n"), "0 0:nan 2:-inf 3:inf\ncolumns=4 least=0");
}

TEST(Csv, BlanksAndTabsAroundACellDoNotCount) {
  EXPECT_EQ(ParseTable(" 1 ,\t2\t, 3\t \n"), "0 0:1 1:2 2:3\ncolumns=3 least=0");
  EXPECT_EQ(ParseTable(" \"1\" ,\t\"2\"\t\n"), "0 0:1 1:2\ncolumns=2 least=0");
}

TEST(Csv, ACellMayStandInQuotes) {
  EXPECT_EQ(ParseTable("\"1\",2,\"-3.5\"\n\"4\",\"5\",\"6\"", {.label_column = 0}),
            "1 0:2 1:-3.5\n4 0:5 1:6\ncolumns=2 least=0");
  EXPECT_EQ(ParseTable("\"3\",\"4\"", {.qid_column = 0}), "0 qid=3 0:4\ncolumns=1 least=0");
}

TEST(Csv, ADelimiterOrAQuoteInQuotesDoesNotEndTheCell) {
  const std::string number = "a decimal number or nothing in column 1";
  EXPECT_EQ(ParseTable("\"1,5\",2\n"), OneFault(0, number));
  EXPECT_EQ(ParseTable("\"1\"\"2\",2\n"), OneFault(0, number));
  EXPECT_EQ(ParseTable("\"\"\"\"\n"), OneFault(0, number));
  EXPECT_EQ(ParseTable("\" 1\"\n"), OneFault(0, number));
  EXPECT_EQ(ParseTable("\" \"\n"), OneFault(0, number));
}

TEST(Csv, AQuoteThatIsNotClosedOnItsLineIsAFault) {
  const auto unclosed = [](int column) {
    return fmt::format("a closing quote on the same line in column {}", column);
  };
  EXPECT_EQ(ParseTable("1,\"2\n3\",4\n"),
            OneFault(2, unclosed(2)) + "\n5: a decimal number or nothing in column 1");
  EXPECT_EQ(ParseTable("1,\"2\n"), OneFault(2, unclosed(2)));
  EXPECT_EQ(ParseTable("\""), OneFault(0, unclosed(1)));
  EXPECT_EQ(ParseTable("\"\"\""), OneFault(0, unclosed(1)));
  EXPECT_EQ(ParseTable("1, \"2\"\"\n"), OneFault(3, unclosed(2)));
}

TEST(Csv, OnlyBlanksMayFollowAClosingQuote) {
  EXPECT_EQ(ParseTable("\"1\"2,3\n"), OneFault(3, "nothing more in column 1 after the closing quote"));
  EXPECT_EQ(ParseTable("1,\"2\" \"3\"\n"), OneFault(6, "nothing more in column 2 after the closing quote"));
}

TEST(Csv, AQuoteInsideOfACellIsNoQuoting) {
  EXPECT_EQ(ParseTable("1,2\"3\"\n"), OneFault(2, "a decimal number or nothing in column 2"));
}

TEST(Csv, LinesEndInLineFeedCarriageReturnOrBothAndTheLastNeedsNone) {
  const std::string rows = "0 0:1 1:2\n0 0:3\ncolumns=2 least=0";
  for (const char* text : {"1,2\n3,\n", "1,2\r\n3,\r\n", "1,2\r3,\r", "1,2\n3,", "1,2\n\r\n\r3, \r\n"}) {
    EXPECT_EQ(ParseTable(text), rows) << text;
  }
}

TEST(Csv, LinesWithNothingButBlanksArePassedOver) {
  EXPECT_EQ(ParseTable("\n1,2\n\n  \t\n3,4\n\n"), "0 0:1 1:2\n0 0:3 1:4\ncolumns=2 least=0");
  EXPECT_EQ(ParseTable(""), "columns=0");
  EXPECT_EQ(ParseTable("\r\n \n"), "columns=0");
}

TEST(Csv, AMissingValueInTheOnlyColumnIsWrittenAsQuotes) {
  EXPECT_EQ(ParseTable("1\n\n\"\"\n2\n"), "0 0:1\n0\n0 0:2\ncolumns=1 least=0");
}

TEST(Csv, TheDelimiterMayBeAnother) {
  EXPECT_EQ(ParseTable("1;2; 3\n", {.delimiter = ';'}), "0 0:1 1:2 2:3\ncolumns=3 least=0");
  EXPECT_EQ(ParseTable("1,2;3\n", {.delimiter = ';'}),
            OneFault(0, "a decimal number or nothing in column 1"));
  EXPECT_EQ(ParseTable("1|\"2\"|\n", {.delimiter = '|'}), "0 0:1 1:2\ncolumns=3 least=0");
}

TEST(Csv, ATabThatSeparatesIsNoBlank) {
  EXPECT_EQ(ParseTable(" 1\t\t2 \t\n\t\t3\t\n\t\"4\" \t\t\n", {.delimiter = '\t'}),
            "0 0:1 2:2\n0 2:3\n0 1:4\ncolumns=4 least=0");
  EXPECT_EQ(ParseTable("\t\n", {.delimiter = '\t'}), "0\ncolumns=2");
}

TEST(Csv, ABlankThatSeparatesIsNone) {
  EXPECT_EQ(ParseTable("1  2\t 3\n", {.delimiter = ' '}), "0 0:1 2:2 3:3\ncolumns=4 least=0");
}

TEST(Csv, ACellThatIsNoNumberIsNamedWithItsPlaceAndColumn) {
  const auto number = [](int column) {
    return fmt::format("a decimal number or nothing in column {}", column);
  };
  EXPECT_EQ(ParseTable("x\n"), OneFault(0, number(1)));
  EXPECT_EQ(ParseTable("1,2, abc ,4\n"), OneFault(5, number(3)));
  EXPECT_EQ(ParseTable("1 2,3\n"), OneFault(0, number(1)));
  EXPECT_EQ(ParseTable("1,0x10\n"), OneFault(2, number(2)));
  EXPECT_EQ(ParseTable("1,2#\n"), OneFault(2, number(2)));
  EXPECT_EQ(ParseTable("1,\"a\"\n"), OneFault(2, number(2)));
  EXPECT_EQ(ParseTable(std::string_view("1,\0\n", 4)), OneFault(2, number(2)));
  EXPECT_EQ(ParseTable("7,1,?\n", {.label_column = 0}), OneFault(4, number(3)));
}

TEST(Csv, ALabelOrWeightOrQueryIdThatIsNoneOrMissingIsAFault) {
  const CsvOptions options{.label_column = 0, .weight_column = 1, .qid_column = 2};
  const std::string label = "a decimal number as label in column 1";
  const std::string weight = "a decimal number as weight in column 2";
  const std::string qid = "a whole number from 0 to 2^64 - 1 as query id in column 3";
  EXPECT_EQ(ParseTable(",1,1,5\n", options), OneFault(0, label));
  EXPECT_EQ(ParseTable("\"\",1,1,5\n", options), OneFault(0, label));
  EXPECT_EQ(ParseTable("y,1,1,5\n", options), OneFault(0, label));
  EXPECT_EQ(ParseTable("1, ,1,5\n", options), OneFault(3, weight));
  EXPECT_EQ(ParseTable("1,w,1,5\n", options), OneFault(2, weight));
  for (const char* text : {"nan,1,1,5\n", "-1e39,1,1,5\n", "\"NaN\",1,1,5\n"})
    EXPECT_EQ(ParseTable(text, options),
              OneFault(0, "a label that is not nan and within the range of a float in column 1"));
  for (const char* text : {"1,nan,1,5\n", "1,-1,1,5\n", "1,inf,1,5\n", "1,1e39,1,5\n"})
    EXPECT_EQ(ParseTable(text, options), OneFault(2, "a finite weight of at least 0 in column 2"));
  EXPECT_EQ(ParseTable("-inf,0,1,5\n", options), "-inf weight=0 qid=1 0:5\ncolumns=1 least=0");
  EXPECT_EQ(ParseTable("1,1,,5\n", options), OneFault(4, qid));
  EXPECT_EQ(ParseTable("1,1,1.5,5\n", options), OneFault(4, qid));
  EXPECT_EQ(ParseTable("1,1,-1,5\n", options), OneFault(4, qid));
  EXPECT_EQ(ParseTable("1,1,18446744073709551616,5\n", options), OneFault(4, qid));
}

TEST(Csv, ARowTooShortForItsLabelWeightOrQueryIdIsAFault) {
  EXPECT_EQ(ParseTable("1,2\n", {.label_column = 2}), OneFault(3, "a label in column 3"));
  EXPECT_EQ(ParseTable("1,2\n", {.weight_column = 4}), OneFault(3, "a weight in column 5"));
  EXPECT_EQ(ParseTable("1,2", {.qid_column = 9}), OneFault(3, "a query id in column 10"));
}

TEST(Csv, ARowWithMoreOrFewerCellsThanTheFirstIsAFault) {
  EXPECT_EQ(ParseTable("1,2,3\n4,5\n6,7,8,9\n10,11,12\n", {.label_column = 1}),
            "2 0:1 1:3\n11 0:10 1:12\ncolumns=2 least=0\n"
            "9: as many cells as the rows before, 3\n"
            "16: as many cells as the rows before, 3");
  EXPECT_EQ(ParseTable("1,2\n3,4,\n"),
            "0 0:1 1:2\ncolumns=2 least=0\n8: as many cells as the rows before, 2");
}

TEST(Csv, CellsThatAreTooManyAreNotJudgedByWhatIsInThem) {
  EXPECT_EQ(ParseTable("1\n2, x\n"), "0 0:1\ncolumns=1 least=0\n5: as many cells as the rows before, 1");
}

TEST(Csv, TheFirstRowThatIsOneSaysHowManyCellsThereAre) {
  EXPECT_EQ(ParseTable("a,b,c,d\n1,2\n3,4\n5,6,7\n"),
            "0 0:1 1:2\n0 0:3 1:4\ncolumns=2 least=0\n"
            "0: a decimal number or nothing in column 1\n"
            "20: as many cells as the rows before, 2");
}

TEST(Csv, AFaultReadsWellInAMessage) {
  const std::string text = "1,2\n3,four \n5\n";
  std::string messages;
  RowBlock<std::uint32_t> block;
  ParseCsv(text, {}, block,
           [&](const Fault& fault) { messages += Describe("t.csv", 2, text, fault) + "\n"; });
  EXPECT_EQ(messages,
            "t.csv:2:3: found 'four', expected a decimal number or nothing in column 2\n"
            "t.csv:2:2: found the end of the line, expected as many cells as the rows before, 2\n");
}

TEST(Csv, ARowThatIsNoneLeavesNoTrace) {
  const CsvOptions options{.label_column = 0, .weight_column = 1, .qid_column = 2};
  const std::string good = "1,0.5,7,,2,\n0,2,8,3,,\n";
  const std::string rows = "1 weight=0.5 qid=7 1:2\n0 weight=2 qid=8 0:3\ncolumns=3 least=0";
  const auto rows_of = [&](const std::string& text) {
    const std::string all = ParseTable(text, options);
    return all.substr(0, all.find('\n', all.find("columns=")));
  };
  for (const std::string bad : {"x", "9,x", "9,9,x", "9,9,9,9,9,x", "9,9,9,9,9,\"", "9,9"}) {
    EXPECT_EQ(rows_of(fmt::format("{}\n{}", bad, good)), rows) << bad;
    EXPECT_EQ(rows_of(fmt::format("1,0.5,7,,2,\n{}\n0,2,8,3,,\n", bad)), rows) << bad;
    EXPECT_EQ(rows_of(good + bad), rows) << bad;
    EXPECT_EQ(rows_of(fmt::format("{0}\n{0}", bad)), "columns=0") << bad;
  }
  EXPECT_EQ(rows_of(good + "9,9,9,9,9,9,9\n"), rows);
}

TEST(Csv, WhatTheHandlerThrowsArrivesAndTheRowsBeforeAreWhole) {
  RowBlock<std::uint32_t> block;
  const auto stop = [](const Fault& fault) { throw DataError(fault.expected); };
  EXPECT_THROW(ParseCsv("1,2,\n3,x,5\n6,7,8\n", {}, block, stop), DataError);
  EXPECT_EQ(ShowRows(block), "0 0:1 1:2\ncolumns=3 least=0");
}

TEST(Csv, RowsAreAddedBehindThoseOfTheBlockAndMustBeAsLong) {
  const CsvOptions options{.label_column = 0, .weight_column = 1};
  RowBlock<std::uint32_t> block;
  std::string faults;
  const auto note = [&](const Fault& fault) { faults += fault.expected + "\n"; };
  ParseCsv("1,2,3,\n", options, block, note);
  ParseCsv("x\n4,5\n4,5,,\n", options, block, note);
  EXPECT_EQ(ShowRows(block), "1 weight=2 0:3\n4 weight=5\ncolumns=2 least=0");
  EXPECT_EQ(faults, "a decimal number as label in column 1\nas many cells as the rows before, 4\n");
}

TEST(Csv, AClearedBlockTakesRowsOfAnotherLength) {
  RowBlock<std::uint32_t> block;
  const auto none = [](const Fault& fault) { FAIL() << fault.expected; };
  ParseCsv("1,2,3\n", {}, block, none);
  block.Clear();
  ParseCsv("4\n", {}, block, none);
  EXPECT_EQ(ShowRows(block), "0 0:4\ncolumns=1 least=0");
}

TEST(Csv, IndicesMayHave64Bits) {
  EXPECT_EQ(ParseTable<std::uint64_t>("1,,3\n4,5\n", {.label_column = 0}),
            "1 1:3\ncolumns=2 least=1\n8: as many cells as the rows before, 3");
}

TEST(Csv, OptionsThatMakeNoSenseAreRefused) {
  const auto complaint = [](const CsvOptions& options) { return ErrorOf([&] { ParseTable("", options); }); };
  EXPECT_EQ(complaint({}), "no error");
  EXPECT_EQ(complaint({.label_column = 0, .weight_column = 1, .qid_column = 2}), "no error");
  EXPECT_EQ(complaint({.label_column = -2}),
            "CSV: label_column is -2, expected a column counted from 0, or -1 for none");
  EXPECT_EQ(complaint({.weight_column = -5}),
            "CSV: weight_column is -5, expected a column counted from 0, or -1 for none");
  EXPECT_EQ(complaint({.qid_column = -2}),
            "CSV: qid_column is -2, expected a column counted from 0, or -1 for none");
  EXPECT_EQ(complaint({.label_column = 3, .weight_column = 3}),
            "CSV: label_column and weight_column are both 3, expected different columns");
  EXPECT_EQ(complaint({.label_column = 0, .qid_column = 0}),
            "CSV: label_column and qid_column are both 0, expected different columns");
  EXPECT_EQ(complaint({.weight_column = 1, .qid_column = 1}),
            "CSV: weight_column and qid_column are both 1, expected different columns");
  for (const char delimiter : {'"', '\n', '\r', '0', '9', 'e', 'Z', '+', '-', '.'}) {
    EXPECT_THROW(ParseTable("", {.delimiter = delimiter}), DataError) << delimiter;
  }
  EXPECT_EQ(
      complaint({.delimiter = '.'}),
      "CSV: the delimiter is '.', expected a character that is neither part of a number nor a quote nor a line end");
}

class CsvTables : public RandomTables {
 protected:
  /// A table's number of cells per row, special columns and delimiter.
  struct Table {
    CsvOptions options;
    int cells = 0;
  };
  Table AnyTable() {
    Table table;
    table.cells = 1 + static_cast<int>(Below(8));
    std::vector<int> columns(static_cast<std::size_t>(table.cells));
    for (int i = 0; i < table.cells; ++i) columns[static_cast<std::size_t>(i)] = i;
    std::shuffle(columns.begin(), columns.end(), random_);
    for (int* special :
         {&table.options.label_column, &table.options.weight_column, &table.options.qid_column}) {
      if (columns.empty() || Below(2) == 0) continue;
      *special = columns.back();
      columns.pop_back();
    }
    table.options.delimiter = OneOf(std::string_view(",;\t |:"));
    return table;
  }

  std::string Blanks(char delimiter) {
    std::string blanks = OneOf({"", "", "", " ", "\t", "  "});
    std::erase(blanks, delimiter);
    return blanks;
  }
  std::string Dress(const std::string& cell, bool must_be_quoted, char delimiter) {
    const char* const quote = must_be_quoted || Below(4) == 0 ? "\"" : "";
    return Blanks(delimiter) + quote + cell + quote + Blanks(delimiter);
  }

  /// Adds a random row to `block` and returns it as text.
  template <typename Index>
  std::string AddRow(const Table& table, RowBlock<Index>& block) {
    const CsvOptions& options = table.options;
    if (block.offsets.empty()) block.offsets.push_back(0);
    if (options.label_column < 0) block.labels.push_back(0);
    std::string text;
    Index feature = 0;
    for (int column = 0; column < table.cells; ++column) {
      std::string cell;
      if (column == options.label_column) {
        block.labels.push_back(AnyFloat());
        cell = fmt::format("{:.9g}", block.labels.back());
      } else if (column == options.weight_column) {
        block.weights.push_back(std::fabs(AnyFloat()));
        cell = fmt::format("{:.9g}", block.weights.back());
      } else if (column == options.qid_column) {
        block.qids.push_back(Below(~std::uint64_t{0}));
        cell = fmt::format("{}", block.qids.back());
      } else if (const Index index = feature++; Below(3) > 0) {
        block.indices.push_back(index);
        block.values.push_back(AnyFloat());
        block.least_index = std::min(block.least_index, index);
        cell = fmt::format("{:.9g}", block.values.back());
      }
      if (column > 0) text += options.delimiter;
      text += Dress(cell, table.cells == 1, options.delimiter);
    }
    block.columns = feature;
    block.offsets.push_back(block.indices.size());
    return text;
  }

  template <typename Index>
  void ExpectReadBack() {
    for (int count = 0; count < 1000; ++count) {
      const Table table = AnyTable();
      RowBlock<Index> written;
      std::string text;
      for (std::uint64_t left = Below(20); left > 0; --left) {
        text += AddRow(table, written) + OneOf({"\n", "\r\n", "\r", "\n\n"});
      }
      RowBlock<Index> read;
      ParseCsv(text, table.options, read,
               [&](const Fault& fault) { FAIL() << Describe("text", 0, text, fault); });
      ASSERT_EQ(ShowRows(read), ShowRows(written)) << text;
    }
  }
};

TEST_F(CsvTables, AreReadBackAsTheyWereWritten) {
  ExpectReadBack<std::uint32_t>();
}

TEST_F(CsvTables, AreReadBackAsTheyWereWrittenWith64BitIndices) {
  ExpectReadBack<std::uint64_t>();
}

TEST_F(CsvTables, LoseOnlyTheRowsThatAreBroken) {
  for (int count = 0; count < 1000; ++count) {
    const Table table = AnyTable();
    RowBlock<std::uint32_t> written;
    std::string text;
    std::uint64_t broken = 0;
    for (std::uint64_t left = Below(20); left > 0; --left) {
      if (Below(3) == 0) {
        RowBlock<std::uint32_t> lost;
        const std::string row = AddRow(table, lost);
        const std::string extra = std::string(1, table.options.delimiter) + "1";
        text += written.empty() || Below(2) == 0 ? row + "x" : row + extra;
        ++broken;
      } else {
        text += AddRow(table, written);
      }
      text += '\n';
    }
    std::uint64_t faults = 0;
    RowBlock<std::uint32_t> read;
    ParseCsv(text, table.options, read, [&](const Fault&) { ++faults; });
    ASSERT_EQ(ShowRows(read), ShowRows(written)) << text;
    ASSERT_EQ(faults, broken) << text;
  }
}

}  // namespace
}  // namespace warren::data
