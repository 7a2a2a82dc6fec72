// A place in the text of one row, for the parsers that look at every byte. Inside of data/ only.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// What a parser throws for itself; never leaves it.
struct BadRow {
  Fault fault;
};

/// Walks over one row, word by word. A word ends at a blank, a '#' or the end of the row.
class RowText {
 public:
  RowText(const char* text, const char* begin, const char* end) : text_(text), at_(begin), end_(end) {
    SkipBlanks();
  }

  bool AtEnd() const { return at_ == end_ || *at_ == '#'; }
  /// The next word, and on to the one behind it.
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
  /// `place` is in the row.
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
