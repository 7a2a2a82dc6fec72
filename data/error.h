// Errors in data, thrown as exceptions. The message about a bad row names the file, line and column, what was
// found there and what was expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warren::data {

class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault in a row. It names no file, because parsers receive only the text.
struct Fault {
  std::size_t position = 0;  ///< byte offset of the word in the text
  std::string expected;      ///< description of what was expected instead of the word
};

/// Called for each bad row. If the handler returns instead of throwing, the row is skipped.
using FaultHandler = std::function<void(const Fault&)>;

/// Returns the word of `text` at `position`, quoted, shortened and printable (binary data must not reach a
/// terminal); "a blank" or "the end of the line" if no word begins there.
std::string Quote(std::string_view text, std::size_t position);

/// Returns "FILE:LINE:COLUMN: found 'WORD', expected EXPECTED". `text` contains at least the row; `line` is
/// the line of the faulty row. Columns count from 1, in bytes.
std::string Describe(std::string_view file, std::uint64_t line, std::string_view text, const Fault& fault);

/// Returns "FILE: DOING failed: the system's reason for `error_number`".
std::string SystemFailure(std::string_view file, std::string_view doing, int error_number);

}  // namespace warren::data
