// Reads the rows that begin in a range of a file's bytes; ranges can be read independently of each other. A
// row begins at the beginning of the file and after each row end (see RowRules). Internal to data/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/array.h"
#include "data/source/file.h"
#include "data/source/row_rules.h"

namespace warren::data {

/// Whole rows, followed by kTextPadding readable bytes.
struct Text {
  std::string_view rows;
  std::uint64_t begin = 0;  ///< position in the file
};

/// Reads the rows whose first byte is in [begin, end) into `buffer`; reads little more of the file than these
/// rows.
Text ReadRows(const File& file, std::uint64_t begin, std::uint64_t end, const RowEnds& row_ends,
              Array<char>& buffer);

/// Reads a file row by row, forwards. Not thread-safe.
class RowScanner {
 public:
  /// If `begin` is inside a row, the first "row" returned is the rest of that row.
  RowScanner(const File& file, std::uint64_t begin, const RowEnds& row_ends)
      : file_(file), begin_(begin), row_ends_(row_ends) {}

  /// Position of the next row.
  std::uint64_t position() const { return begin_ + at_; }
  bool AtEnd() const { return position() >= file_.size(); }
  /// Returns the next row without its terminator, and advances. The view is valid until the next call.
  std::string_view Next();

 private:
  std::string_view text() const { return {text_.data(), text_.size()}; }
  bool ReadMore();

  const File& file_;
  std::uint64_t begin_;  ///< position of text_ in the file
  const RowEnds& row_ends_;
  Array<char> text_;
  std::size_t at_ = 0;
  std::size_t dropped_ = 0;
};

/// Returns the first position at or after `offset` at which a part may begin: the beginning of a row if rows
/// name no queries, otherwise of a row whose query differs from the preceding row's; the end of the file if
/// there is no such row.
std::uint64_t QueryBegin(const File& file, std::uint64_t offset, const RowEnds& row_ends,
                         const QueryOf& query_of);

/// The maximum size of a row in bytes; a whole row must fit into memory. Longer text without a row end is
/// probably binary data or a decompression bomb: even ten million entries such as `7:0.123456` are shorter.
inline constexpr std::uint64_t kMostRowBytes = std::uint64_t{128} << 20;
/// The number of bytes after which reading a row stops: one byte above the limit proves that the row is too
/// long.
inline constexpr std::uint64_t kMostBytesToFindRowEnd = kMostRowBytes + 1;
/// Throws DataError if `bytes`, the length so far of the row that begins at `begin`, exceeds kMostRowBytes.
void RequireRowEnds(const std::string& file, std::uint64_t begin, std::uint64_t bytes);

/// The position of a byte in a file and the number of its line, counted from 1. CR LF counts as one line end.
struct LinePlace {
  std::uint64_t offset = 0;
  std::uint64_t line = 1;
  bool after_cr = false;  ///< whether the byte before `offset` is a CR
};
/// Returns the line of the byte at `offset`. Reads the file from `known` on, which must not lie after
/// `offset`.
LinePlace LineAt(const File& file, std::uint64_t offset, LinePlace known = {});

/// Counts the lines that end in `text`. On input, `after_cr` is true if a CR precedes the text; on output, if
/// the text ends with one.
std::uint64_t CountLineEnds(std::string_view text, bool& after_cr);

}  // namespace warren::data
