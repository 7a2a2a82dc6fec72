// A cursor in the text of one row, for parsers that examine the bytes one by one. Internal to data/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "data/error.h"

namespace warren::data::internal {

inline bool IsLineEnd(char c) {
  return c == '\n' || c == '\r';
}
inline bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}

/// Thrown for a bad row, and caught inside the parser.
struct BadRow {
  Fault fault;
};

/// Iterates over the words of one row. A word ends at a blank, a tab, a '#' or the end of the row.
class RowText {
 public:
  RowText(const char* text, const char* begin, const char* end) : text_(text), at_(begin), end_(end) {
    SkipBlanks();
  }

  bool AtEnd() const { return at_ == end_ || *at_ == '#'; }
  /// Returns the next word and advances to the one after it.
  std::string_view Word() {
    const char* begin = at_;
    while (at_ != end_ && !IsBlank(*at_) && *at_ != '#') ++at_;
    const std::string_view word(begin, static_cast<std::size_t>(at_ - begin));
    SkipBlanks();
    return word;
  }
  bool StartsWith(std::string_view prefix) const {
    return std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(prefix);
  }
  /// Throws BadRow for a fault at `place`, which must be in the row.
  [[noreturn]] void Complain(const char* place, std::string expected) const {
    throw BadRow{{static_cast<std::size_t>(place - text_), std::move(expected)}};
  }
  const char* at() const { return at_; }

 private:
  void SkipBlanks() {
    while (at_ != end_ && IsBlank(*at_)) ++at_;
  }

  const char* text_;
  const char* at_;
  const char* end_;
};

}  // namespace warren::data::internal
