// What has to be known of a text to cut it into whole rows, whatever its format. Who reads a format says it
// (text/format.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace warren::data {

/// Texts that are parsed are followed by as many bytes that can be read; what is in them does not matter.
inline constexpr std::size_t kTextPadding = 128;

/// Bytes, each of which ends a row wherever it stands.
class RowEnds {
 public:
  constexpr explicit RowEnds(std::string_view bytes) {
    for (const char byte : bytes) ends_[static_cast<unsigned char>(byte)] = true;
  }

  constexpr bool Has(char byte) const { return ends_[static_cast<unsigned char>(byte)]; }
  constexpr bool empty() const { return std::find(ends_.begin(), ends_.end(), true) == ends_.end(); }
  /// One of them, of which there are some: LF of the line ends.
  constexpr char Any() const {
    return static_cast<char>(std::find(ends_.begin(), ends_.end(), true) - ends_.begin());
  }
  /// The first one at or behind `from`; the end of the text when there is none.
  constexpr std::size_t Find(std::string_view text, std::size_t from = 0) const {
    while (from < text.size() && !Has(text[from])) ++from;
    return from;
  }
  /// The place behind the last one, where a row begins; 0 when there is none.
  constexpr std::size_t BehindLast(std::string_view text) const {
    std::size_t end = text.size();
    while (end > 0 && !Has(text[end - 1])) --end;
    return end;
  }

 private:
  std::array<bool, 256> ends_{};
};

/// LF and CR; both together end one row and an empty one, which is none.
inline constexpr RowEnds kLineEnds("\n\r");

/// The query that a row belongs to; empty when it names none; nothing when the text is no row (blank, a
/// comment) or a bad one.
using QueryOf = std::function<std::optional<std::string>(std::string_view row)>;

struct RowRules {
  RowEnds row_ends = kLineEnds;
  char comment =
      '\0';  ///< a row that begins with it, behind blanks and tabs, is none; NUL: there are no such
  bool header = false;  ///< the first row of each file is none of the data set's
  /// Makes what tells queries from the first row of the data set, which is empty when it is not known. Rows
  /// of one query stay together. When this or what it makes is empty, rows name no queries.
  std::function<QueryOf(std::string_view first_row)> queries;
};

}  // namespace warren::data
