// The rows that begin in a range of bytes, the line numbers of bytes, and the beginnings of queries.
#include "data/source/row_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "data/error.h"

namespace warren::data {
namespace {

class MemoryFile final : public File {
 public:
  explicit MemoryFile(std::string text) : File("memory", text.size()), text_(std::move(text)) {}
  void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
    ASSERT_LE(offset + bytes, text_.size());
    std::memcpy(to, text_.data() + offset, bytes);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string Rows(const MemoryFile& file, std::uint64_t begin, std::uint64_t end) {
  Array<char> buffer;
  const Text text = ReadRows(file, begin, end, kLineEnds, buffer);
  if (!text.rows.empty()) {
    EXPECT_EQ(file.text().substr(text.begin, text.rows.size()), text.rows);
  }
  return std::string(text.rows);
}

TEST(ReadRows, ARowBelongsToTheRangeInWhichItBegins) {
  const MemoryFile file("one\ntwo\nthree\n");
  EXPECT_EQ(Rows(file, 0, 14), "one\ntwo\nthree\n");
  EXPECT_EQ(Rows(file, 0, 1), "one\n");
  EXPECT_EQ(Rows(file, 0, 4), "one\n");
  EXPECT_EQ(Rows(file, 0, 5), "one\ntwo\n");
  EXPECT_EQ(Rows(file, 1, 4), "");
  EXPECT_EQ(Rows(file, 1, 5), "two\n");
  EXPECT_EQ(Rows(file, 4, 5), "two\n");
  EXPECT_EQ(Rows(file, 8, 9), "three\n");
  EXPECT_EQ(Rows(file, 9, 14), "");
}

TEST(ReadRows, TheLastLineEndMayBeMissing) {
  const MemoryFile file("one\ntwo");
  EXPECT_EQ(Rows(file, 0, 7), "one\ntwo");
  EXPECT_EQ(Rows(file, 4, 7), "two");
  EXPECT_EQ(Rows(file, 5, 7), "");
}

TEST(ReadRows, RowsLongerThanAllThatIsReadAtOnce) {
  const std::string row(300'000, 'x');
  const MemoryFile file(row + "\n" + row + "\n");
  EXPECT_EQ(Rows(file, 0, 1), row + "\n");
  EXPECT_EQ(Rows(file, 1, 300'000), "");
  EXPECT_EQ(Rows(file, 300'000, 300'002), row + "\n");
}

TEST(ReadRows, AFileThatEndsBeforeTheRangeIsAnError) {
  const MemoryFile file("one\n");
  EXPECT_THROW(Rows(file, 8, 12), DataError);
  EXPECT_THROW(Rows(file, 2, 12), DataError);
}

TEST(ReadRows, RangesShareRowsOutWithoutLossHoweverTheyAreCut) {
  std::mt19937 random(2);
  const char alphabet[] = "ab\n\r";
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text(random() % 60 + 1, ' ');
    for (char& c : text) c = alphabet[random() % 4];
    const MemoryFile file(text);
    std::string all;
    for (std::uint64_t begin = 0; begin < text.size();) {
      const std::uint64_t end = std::min<std::uint64_t>(begin + random() % 9 + 1, text.size());
      all += Rows(file, begin, end);
      begin = end;
    }
    ASSERT_EQ(all, text);
  }
}

TEST(LineAt, CountsEveryKindOfLineEndOnce) {
  const MemoryFile file("a\nb\r\nc\rd\n\ne");
  const auto line_of = [&](char c) { return LineAt(file, file.text().find(c)).line; };
  EXPECT_EQ(line_of('a'), 1U);
  EXPECT_EQ(line_of('b'), 2U);
  EXPECT_EQ(line_of('c'), 3U);
  EXPECT_EQ(line_of('d'), 4U);
  EXPECT_EQ(line_of('e'), 6U);
  // Counting may continue from any earlier position, including the middle of a CR LF.
  for (std::uint64_t from = 0; from < file.size(); ++from) {
    EXPECT_EQ(LineAt(file, file.size() - 1, LineAt(file, from)).line, 6U) << from;
  }
}

/// The query of a row: its first letter, or empty if that is '-'. Returns nullopt for an empty row and for a
/// comment, which begins with '#'.
std::optional<std::string> FirstLetter(std::string_view row) {
  while (!row.empty() && (row.back() == '\n' || row.back() == '\r')) row.remove_suffix(1);
  if (row.empty() || row[0] == '#') return std::nullopt;
  return row[0] == '-' ? std::string() : std::string(row.substr(0, 1));
}

TEST(QueryBegin, IsWhereAnotherQueryBegins) {
  const MemoryFile file("a1\na2\nb1\nb2\nc1\n");
  EXPECT_EQ(QueryBegin(file, 0, kLineEnds, FirstLetter), 0U);
  EXPECT_EQ(QueryBegin(file, 1, kLineEnds, FirstLetter), 6U);
  EXPECT_EQ(QueryBegin(file, 3, kLineEnds, FirstLetter), 6U);
  EXPECT_EQ(QueryBegin(file, 6, kLineEnds, FirstLetter), 6U);
  EXPECT_EQ(QueryBegin(file, 7, kLineEnds, FirstLetter), 12U);
  EXPECT_EQ(QueryBegin(file, 13, kLineEnds, FirstLetter), 15U);
}

TEST(QueryBegin, CommentsAndEmptyLinesDoNotEndAQuery) {
  const MemoryFile file("a1\n#\n\na2\n# b\nb1\n");
  EXPECT_EQ(QueryBegin(file, 1, kLineEnds, FirstLetter), 13U);
  EXPECT_EQ(QueryBegin(file, 5, kLineEnds, FirstLetter), 13U);
  EXPECT_EQ(QueryBegin(file, 10, kLineEnds, FirstLetter), 13U);
}

TEST(QueryBegin, RowsWithoutQueriesBeginWhereTheyBegin) {
  const MemoryFile file("-1\n-2\n-3\n");
  EXPECT_EQ(QueryBegin(file, 1, kLineEnds, FirstLetter), 3U);
  EXPECT_EQ(QueryBegin(file, 3, kLineEnds, FirstLetter), 3U);
  EXPECT_EQ(QueryBegin(file, 4, kLineEnds, FirstLetter), 6U);
}

TEST(QueryBegin, QueriesOfAnyLengthAreSeenWhole) {
  std::string text = "a\n";
  for (int i = 0; i < 50'000; ++i) text += "b" + std::to_string(i) + "\n";
  const std::size_t end = text.size();
  text += "c\n";
  const MemoryFile file(text);
  for (const std::uint64_t offset : {3UL, 5'000UL, 150'000UL, end - 1}) {
    EXPECT_EQ(QueryBegin(file, offset, kLineEnds, FirstLetter), end) << offset;
  }
}

}  // namespace
}  // namespace warren::data
