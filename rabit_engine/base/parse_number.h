// Parses texts that consist of one number.
#pragma once

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace warren {

/// Parses `text` as a decimal number from `low` to `high`; nullopt if it is anything else.
template <typename T>
std::optional<T> ParseNumber(std::string_view text, T low = std::numeric_limits<T>::lowest(),
                             T high = std::numeric_limits<T>::max()) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < low || value > high) return std::nullopt;
  return value;
}

}  // namespace warren
