// Rules for splitting text of any format into whole rows. Each format defines its own rules (text/format.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace warren::data {

/// The number of readable bytes, with any content, that must follow the text passed to a parser.
inline constexpr std::size_t kTextPadding = 128;

/// A set of bytes, each of which ends a row wherever it occurs.
class RowEnds {
 public:
  constexpr explicit RowEnds(std::string_view bytes) {
    for (const char byte : bytes) ends_[static_cast<unsigned char>(byte)] = true;
  }

  constexpr bool Has(char byte) const { return ends_[static_cast<unsigned char>(byte)]; }
  constexpr bool empty() const { return std::find(ends_.begin(), ends_.end(), true) == ends_.end(); }
  /// Returns one of the bytes; the set must not be empty. For kLineEnds it is LF.
  constexpr char Any() const {
    return static_cast<char>(std::find(ends_.begin(), ends_.end(), true) - ends_.begin());
  }
  /// Returns the position of the first row end at or after `from`, or the end of the text.
  constexpr std::size_t Find(std::string_view text, std::size_t from = 0) const {
    while (from < text.size() && !Has(text[from])) ++from;
    return from;
  }
  /// Returns the position after the last row end, where a row begins; 0 if there is no row end.
  constexpr std::size_t BehindLast(std::string_view text) const {
    std::size_t end = text.size();
    while (end > 0 && !Has(text[end - 1])) --end;
    return end;
  }

 private:
  std::array<bool, 256> ends_{};
};

/// LF and CR. CR LF thus ends a row and an empty row, which is ignored.
inline constexpr RowEnds kLineEnds("\n\r");

/// Returns the query of a row: empty if it names none; nullopt if the text is not a row (blank, a comment) or
/// is a bad row.
using QueryOf = std::function<std::optional<std::string>(std::string_view row)>;

struct RowRules {
  RowEnds row_ends = kLineEnds;
  /// Rows that begin with this character, after blanks and tabs, are ignored; NUL: no comments.
  char comment = '\0';
  bool header = false;  ///< whether the first row of each file is a header
  /// Makes a QueryOf. `first_row`: the first row of the data set, or empty if unknown. Consecutive rows of a
  /// query belong to the same part. If this function or its result is empty, rows have no queries.
  std::function<QueryOf(std::string_view first_row)> queries;
};

}  // namespace warren::data
