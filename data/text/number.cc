#include "data/text/number.h"

#include <fast_float/fast_float.h>

#include <charconv>
#include <cmath>
#include <cstring>

namespace warren::data {
namespace {

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// The powers of ten that a double represents exactly.
constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kMostFraction = 22;
constexpr int kMostDigits = 19;
constexpr std::uint64_t kExactInDouble = std::uint64_t{1} << 53;

/// Whether a double is halfway between two floats. The exact value may then be on either side of the double,
/// so rounding the double to a float could be wrong. For all other doubles, that rounding is right.
bool IsBetweenFloats(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x1FFFFFFF) == 0x10000000;
}

/// Parses the common case: few enough digits, no exponent. Returns false in all other cases. Clinger, "How to
/// Read Floating Point Numbers Accurately", 1990.
bool ParseShort(const char* begin, const char* end, float& value) {
  std::uint64_t mantissa = 0;
  int digits = 0;
  int fraction = -1;
  if (end - begin > kMostDigits + 1) return false;
  for (const char* at = begin; at < end; ++at) {
    if (IsDigit(*at)) {
      mantissa = mantissa * 10 + static_cast<unsigned>(*at - '0');
      ++digits;
    } else if (*at == '.' && fraction < 0) {
      fraction = static_cast<int>(end - at - 1);
    } else {
      return false;
    }
  }
  if (digits == 0 || digits > kMostDigits || mantissa > kExactInDouble) return false;
  if (fraction < 0) fraction = 0;
  static_assert(kMostDigits <= kMostFraction);
  const double wide = static_cast<double>(mantissa) / kPowersOfTen[fraction];
  if (IsBetweenFloats(wide)) return false;
  value = static_cast<float>(wide);
  return true;
}

}  // namespace

bool ParseFloat(const char* begin, const char* end, float& value) {
  const char* number = begin;
  bool negative = false;
  if (number < end && (*number == '+' || *number == '-')) {
    negative = *number == '-';
    ++number;
  }
  float magnitude = 0;
  if (!ParseShort(number, end, magnitude)) {
    // At most one sign is allowed.
    if (number == end || *number == '+' || *number == '-') return false;
    const auto [stop, error] = fast_float::from_chars(number, end, magnitude);
    if (stop != end || (error != std::errc() && error != std::errc::result_out_of_range)) return false;
    // nan(text) is valid in C, but not in these formats.
    if (std::isnan(magnitude) && end - number != 3) return false;
  }
  value = negative ? -magnitude : magnitude;
  return true;
}

bool ParseUnsigned(const char* begin, const char* end, std::uint64_t most, std::uint64_t& value) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (stop != end || error != std::errc() || number > most) return false;
  value = number;
  return true;
}

}  // namespace warren::data
