// What can go wrong with data. Exceptions, as in the rest of the tree; messages say which file, line and
// column, what was found there and what was expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace warren::data {

class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What is wrong with a row, found by a parser that knows the text but not where the text comes from.
struct Fault {
  std::size_t position = 0;  ///< of the word, in bytes from the beginning of the text
  std::string expected;      ///< instead of the word
};

/// Told of each row that is no row; it is left out when this returns.
using FaultHandler = std::function<void(const Fault&)>;

/// The word of `text` at `position`, in quotes, short and printable: binary junk must not reach a terminal.
std::string Quote(std::string_view text, std::size_t position);

/// "FILE:LINE:COLUMN: found 'WORD', expected EXPECTED". `text` is the row or more; `line` is that of the row
/// in which the fault is. Columns count from 1, in bytes.
std::string Describe(std::string_view file, std::uint64_t line, std::string_view text, const Fault& fault);

/// "FILE: DOING failed: the system's reason for `error_number`".
std::string SystemFailure(std::string_view file, std::string_view doing, int error_number);

}  // namespace warren::data
