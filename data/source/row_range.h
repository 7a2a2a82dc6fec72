// The rows that begin in a range of a file's bytes: what makes parts and pieces independent of each other. A
// row begins at the beginning of the file and behind each row end, which are those of RowRules. Inside of
// data/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/array.h"
#include "data/source/file.h"
#include "data/source/row_rules.h"

namespace warren::data {

/// Whole rows, followed by kTextPadding bytes that can be read.
struct Text {
  std::string_view rows;
  std::uint64_t begin = 0;  ///< where they are in the file
};

/// The rows that begin at begin <= byte < end. `buffer` is where they are kept. Reads little more than they
/// take.
Text ReadRows(const File& file, std::uint64_t begin, std::uint64_t end, const RowEnds& row_ends,
              Array<char>& buffer);

/// Goes through a file row by row, forwards. For one thread.
class RowScanner {
 public:
  /// `begin` is where a row begins, or else the rest of a row comes first.
  RowScanner(const File& file, std::uint64_t begin, const RowEnds& row_ends)
      : file_(file), begin_(begin), row_ends_(row_ends) {}

  /// Where the next row begins.
  std::uint64_t position() const { return begin_ + at_; }
  bool AtEnd() const { return position() >= file_.size(); }
  /// The next row without its end, and on to the one behind it. Valid until the next call.
  std::string_view Next();

 private:
  std::string_view text() const { return {text_.data(), text_.size()}; }
  bool ReadMore();

  const File& file_;
  std::uint64_t begin_;  ///< of text_
  const RowEnds& row_ends_;
  Array<char> text_;
  std::size_t at_ = 0;
  std::size_t dropped_ = 0;
};

/// The first row at or behind `offset` that is not of the same query as the row before it: where a part may
/// begin. The first row at or behind `offset` when that names no query.
std::uint64_t QueryBegin(const File& file, std::uint64_t offset, const RowEnds& row_ends,
                         const QueryOf& query_of);

/// A row is held in memory whole. One that is longer, without its end, is none, but binary data, or a
/// few compressed bytes that would fill all memory. Ten million entries like `7:0.123456` are shorter.
inline constexpr std::uint64_t kMostRowBytes = std::uint64_t{128} << 20;
/// Where to stop reading a row: a longer one is known by one more byte.
inline constexpr std::uint64_t kMostBytesToFindRowEnd = kMostRowBytes + 1;
/// Throws DataError when the row that begins at `begin` has come to more than kMostRowBytes.
void RequireRowEnds(const std::string& file, std::uint64_t begin, std::uint64_t bytes);

/// A byte of a file, and the number of the line it is in, counted from 1; CR LF ends one line.
struct LinePlace {
  std::uint64_t offset = 0;
  std::uint64_t line = 1;
  bool after_cr = false;  ///< the byte before it is a CR
};
/// That of the byte at `offset`. Reads all that is between it and `known`, which is not behind it.
LinePlace LineAt(const File& file, std::uint64_t offset, LinePlace known = {});

/// How many lines end in `text`. `after_cr`: it follows a CR; then becomes whether it ends with one.
std::uint64_t CountLineEnds(std::string_view text, bool& after_cr);

}  // namespace warren::data
