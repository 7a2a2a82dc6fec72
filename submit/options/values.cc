#include "submit/options/values.h"

#include <fast_float/fast_float.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

namespace warren::submit {

int ParseCount(const std::string& text, int least, int most) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (error == std::errc::result_out_of_range || (whole && value > most)) {
    throw std::runtime_error(fmt::format("'{}' is too big; the maximum is {}", text, most));
  }
  if (!whole) throw std::runtime_error(fmt::format("'{}' is not a whole number", text));
  if (value < least) {
    throw std::runtime_error(fmt::format("'{}' is too small; the minimum is {}", text, least));
  }
  return static_cast<int>(value);
}

std::uint64_t ParseMemorySize(const std::string& text) {
  const std::map<char, int> shifts = {{'k', 10}, {'m', 20}, {'g', 30}, {'t', 40}};
  const auto malformed = [&] {
    return std::runtime_error(fmt::format(
        "'{}' is not a memory size; write a number and k, m, g or t, such as 512m or 1.5g", text));
  };
  if (text.size() < 2) throw malformed();
  const auto unit = shifts.find(static_cast<char>(std::tolower(static_cast<unsigned char>(text.back()))));
  double number = 0;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] =
      fast_float::from_chars(text.data(), last, number, fast_float::chars_format::fixed);
  if (unit == shifts.end() || error != std::errc{} || end != last || !(number >= 0)) throw malformed();
  const double bytes = number * static_cast<double>(std::uint64_t{1} << unit->second);
  if (bytes < 1)
    throw std::runtime_error(fmt::format("'{}' is too small: memory must be at least 1 byte", text));
  if (bytes >= static_cast<double>(std::uint64_t{1} << 60)) {
    throw std::runtime_error(fmt::format("'{}' is more memory than any machine has", text));
  }
  return static_cast<std::uint64_t>(bytes);
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace warren::submit
