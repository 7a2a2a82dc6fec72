// Numbers: ParseFloat's results have strtof's bits, and it accepts every decimal number that strtof accepts.
// ParseUnsigned accepts exactly the numbers of at most 64 bits.
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/number.h"

namespace {

void Require(bool right) {
  if (!right) std::abort();
}

void CompareFloat(std::string_view text) {
  const std::vector<char> exact(text.begin(), text.end());
  float value = 42;
  const bool taken = warren::data::ParseFloat(exact.data(), exact.data() + exact.size(), value);
  Require(taken || value == 42);
  const std::string with_end(text);
  char* stop = nullptr;
  const float expected = std::strtof(with_end.c_str(), &stop);
  const bool whole = !text.empty() && stop == with_end.c_str() + with_end.size();
  if (taken) Require(whole && std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(expected));
  const bool decimal = text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  if (whole && decimal) Require(taken);
}

void CompareUnsigned(std::string_view text) {
  const std::vector<char> exact(text.begin(), text.end());
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  bool expected = !text.empty();
  std::uint64_t number = 0;
  for (const char c : text) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    expected = expected && c >= '0' && c <= '9' && number <= (kMost - digit) / 10;
    number = number * 10 + digit;
  }
  std::uint64_t value = 42;
  const bool taken = warren::data::ParseUnsigned(exact.data(), exact.data() + exact.size(), kMost, value);
  Require(taken == expected && value == (expected ? number : 42));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CompareFloat(text);
  CompareUnsigned(text);
  return 0;
}
