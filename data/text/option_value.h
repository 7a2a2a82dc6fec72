// Parses option values in the name of a data set: "key=value".
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "data/error.h"

namespace warren::data {

/// Returns `value` as a number. Throws DataError unless it is a whole number from `least` to `most`.
template <typename Number>
Number WholeNumber(std::string_view key, std::string_view value, Number least, Number most) {
  Number number{};
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || stop != value.data() + value.size() || number < least || number > most) {
    throw DataError(fmt::format("{}={}: expected a whole number from {} to {}", key, value, least, most));
  }
  return number;
}

/// Returns the entry of `values` with the name `value`. Throws DataError, listing the known names, if there
/// is none.
template <typename Value>
Value OneOf(std::string_view key, std::string_view value, const std::map<std::string_view, Value>& values) {
  if (const auto found = values.find(value); found != values.end()) return found->second;
  std::string known;
  for (const auto& [name, unused] : values) known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  throw DataError(fmt::format("{}={}: expected one of {}", key, value, known));
}

}  // namespace warren::data
