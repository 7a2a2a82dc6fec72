// Numbers: parsed floats have the bits that strtof returns, and text that is not a number is refused.
#include "data/text/number.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace warren::data {
namespace {

using Random = std::mt19937_64;

std::optional<float> ParseNumber(std::string_view text) {
  float value = 0;
  if (!ParseFloat(text.data(), text.data() + text.size(), value)) return std::nullopt;
  return value;
}

std::uint32_t Bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

/// Expects ParseFloat to read the whole text as strtof does, bit for bit. Fails fatally, so that callers can
/// stop at the first difference.
void ExpectAsStrtof(const std::string& text) {
  char* stop = nullptr;
  const float expected = std::strtof(text.c_str(), &stop);
  ASSERT_EQ(*stop, '\0') << "not a number for strtof: " << text;
  const std::optional<float> value = ParseNumber(text);
  ASSERT_TRUE(value.has_value()) << text;
  ASSERT_EQ(Bits(*value), Bits(expected)) << text << " is " << *value << ", for strtof " << expected;
}

/// ExpectAsStrtof without a sign and with either sign.
void ExpectSignedAsStrtof(const std::string& text) {
  for (const char* sign : {"", "-", "+"}) ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(sign + text));
}

template <typename T>
std::string Printed(const char* format, int digits, T value) {
  std::array<char, 512> text{};
  const int length = std::snprintf(text.data(), text.size(), format, digits, static_cast<double>(value));
  return {text.data(), static_cast<std::size_t>(length)};
}

/// A random finite, non-negative float; all exponents are equally likely.
float AnyFloat(Random& random) {
  for (;;) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0x7FFFFFFFU);
    if (std::isfinite(value)) return value;
  }
}

/// A random float in the range of most values in files, about 1e-5 to 1e7.
float UsualFloat(Random& random) {
  return std::ldexp(static_cast<float>(random() % (1 << 24)), static_cast<int>(random() % 40) - 40);
}

std::string DigitString(Random& random, std::size_t digits) {
  std::string text;
  for (std::size_t i = 0; i < digits; ++i) text += static_cast<char>('0' + random() % 10);
  return text;
}

TEST(ParseFloat, ReadsEveryForm) {
  for (const char* text :
       {"0",   "1",    "9",    "12",   "007",  "1.5",  ".5",  "5.",        "0.0", "00.00",           "1e5",
        "1E5", "1e+5", "1e-5", "1.e2", ".1e2", "1e05", "1e0", "123456789", "0.1", "3.14159265358979"}) {
    ExpectSignedAsStrtof(text);
  }
}

TEST(ParseFloat, RefusesWhatIsNoNumber) {
  for (const char* text :
       {"",       ".",     "-",     "+",     "+-1",  "-+1",   "--1",          "++1",       "-.",
        "+.",     "1e",    "1e+",   "1e-",   "e5",   ".e5",   "0x10",         "0x",        "0b1",
        "nan(1)", "nan()", "1 ",    " 1",    "1,5",  "1,000", "infin",        "in",        "na",
        "nann",   "i",     "inf1",  "1inf",  "1nan", "-i",    "1.2.3",        "1..",       "..1",
        "1f",     "1.0f",  "1d5",   "1e5.5", "1e5e", "1e1e1", "1:2",          "#",         "1#",
        "\t1",    "1\n",   "1_0",   "'1'",   "1-",   "1+",    "- 1",          "infinityx", "infinit",
        "NaN0",   "snan",  "$1",    "1%",    "\xFF", "1\xFF", "\xEF\xBC\x91", "e",         "E1",
        "1ee1",   "1e--1", "1e+-1", ".-1",   "-.e1", "1p3",   "0x1p3"}) {
    EXPECT_EQ(ParseNumber(text), std::nullopt) << "'" << text << "'";
  }
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(ParseNumber("1\0"sv), std::nullopt);
  EXPECT_EQ(ParseNumber("\0"sv), std::nullopt);
}

TEST(ParseFloat, LeavesTheValueAloneWhenItRefuses) {
  for (const std::string_view text :
       {"", "1e", "1.2.3", "123456789x", "nan(1)", "1e99999x", "12345678901234567890x"}) {
    float value = 42;
    EXPECT_FALSE(ParseFloat(text.data(), text.data() + text.size(), value)) << text;
    EXPECT_EQ(value, 42) << text;
  }
}

TEST(ParseFloat, DoesNotLookBehindTheEnd) {
  const std::string_view text = "1.25e12.5";
  EXPECT_EQ(ParseNumber(text.substr(0, 1)), 1.0F);
  EXPECT_EQ(ParseNumber(text.substr(0, 2)), 1.0F);
  EXPECT_EQ(ParseNumber(text.substr(0, 4)), 1.25F);
  EXPECT_EQ(ParseNumber(text.substr(0, 5)), std::nullopt);
  EXPECT_EQ(ParseNumber(text.substr(0, 6)), 12.5F);
}

TEST(ParseFloat, TakesInfinityAndNanInAnyCase) {
  for (const char* text : {"inf", "INF", "Inf", "iNf", "infinity", "INFINITY", "Infinity", "iNfInItY", "nan",
                           "NAN", "NaN", "nAn"}) {
    ExpectSignedAsStrtof(text);
  }
}

TEST(ParseFloat, KeepsTheSignOfZero) {
  for (const char* text :
       {"0", "0.0", ".0", "0.", "0e5", "0e-99", "0.000000000000000000000000000001e-50", "0e999999999999"}) {
    ExpectSignedAsStrtof(text);
  }
  EXPECT_TRUE(std::signbit(ParseNumber("-0").value()));
}

TEST(ParseFloat, HasNoLimitOfDigits) {
  const std::string zeros(500, '0');
  const std::string nines(500, '9');
  for (const std::string& text :
       {zeros, zeros + "1", zeros + ".5", "0." + zeros + "1", "1." + zeros, "1." + zeros + "1", nines,
        "0." + nines, nines + "e-500", "0." + zeros + "1e501", "1" + zeros + "e-500", "1e" + zeros + "1",
        "1e-" + zeros + "1", fmt::format("{}16777217.0{}", zeros, zeros), "16777217." + zeros + "1"}) {
    ExpectSignedAsStrtof(text);
  }
}

TEST(ParseFloat, IsExactAroundTheNumberOfDigitsOfTheShortWay) {
  // Around 2^53 and 10^19, where the fast path ends, with the dot at every position.
  for (const char* digits :
       {"9007199254740991", "9007199254740992", "9007199254740993", "9007199254740994", "9999999999999999",
        "10000000000000000", "18014398509481985", "999999999999999999", "1000000000000000000",
        "9999999999999999999", "10000000000000000000", "18446744073709551615", "18446744073709551616",
        "00000000000000000001", "0000000000000000001", "000000000000000000016777217"}) {
    const std::string text = digits;
    ExpectSignedAsStrtof(text);
    for (std::size_t dot = 0; dot <= text.size(); ++dot) {
      ASSERT_NO_FATAL_FAILURE(ExpectSignedAsStrtof(text.substr(0, dot) + "." + text.substr(dot)));
    }
  }
}

TEST(ParseFloat, RoundsHalfToEven) {
  for (const char* text :
       {"16777216", "16777217", "16777218", "16777219", "16777217.0", "16777217.00000001",
        "16777216.99999999", "33554434", "33554435", "33554437", "1.00000005960464477539062",
        "1.000000059604644775390625", "1.0000000596046447753906250",
        "1.00000005960464477539062500000000000000000000001", "1.000000178813934326171875",
        "1.0000001788139343261718749999999999999999999", "1.00000017881393432617187500000000000000000001"}) {
    ExpectSignedAsStrtof(text);
  }
}

TEST(ParseFloat, DoesNotRoundTwice) {
  // The nearest double of each number lies halfway between two floats; the number itself does not.
  for (const char* text :
       {"1.0000000596046448", "1.00000005960464477", "1.00000005960464478", "0.50000002980232239",
        "4.0000002384185791", "16777217.000000001", "16777217.0000000001", "16777216.9999999999",
        "8388608.5000000001", "8388608.4999999999", "1.00000017881393433", "1.00000017881393432",
        "7.038531e-26", "1.1754943508222875e-38"}) {
    ExpectSignedAsStrtof(text);
  }
}

TEST(ParseFloat, BecomesInfinityOrZeroBeyondTheRange) {
  for (const char* text : {"3.4028234e38",
                           "3.4028235e38",
                           "3.40282346638528859811704183484516925440e38",
                           "3.4028235677973365e38",
                           "3.4028235677973366e38",
                           "340282356779733661637539395458142568447",
                           "340282356779733661637539395458142568448",
                           "340282356779733661637539395458142568447.99999",
                           "3.5e38",
                           "1e39",
                           "1e400",
                           "1e99999",
                           "1e2147483648",
                           "1e9223372036854775808",
                           "1e99999999999999999999999999",
                           "1e-45",
                           "1e-46",
                           "1.4e-45",
                           "7e-46",
                           "7.0064923216240853546186479164495e-46",
                           "7.0064923216240853546186479164496e-46",
                           "7.0064923216240862e-46",
                           "7.1e-46",
                           "1e-400",
                           "1e-99999",
                           "1e-9223372036854775808",
                           "1e-99999999999999999999999999"}) {
    ExpectSignedAsStrtof(text);
  }
}

TEST(ParseFloat, ReadsSubnormals) {
  for (const char* text : {"1.17549435e-38", "1.17549421e-38", "1.1754942807573643e-38", "1.17549428e-38",
                           "5.877471754e-39", "1e-40", "2.8e-45", "2.1e-45",
                           "2.10194769648722560638559437e-45", "4.2e-45", "1.401298464324817e-45"}) {
    ExpectSignedAsStrtof(text);
  }
}

TEST(ParseFloat, EqualsStrtofOnRandomFloatsInManyFormats) {
  Random random(20240601);
  for (int i = 0; i < 60000; ++i) {
    for (const float value : {AnyFloat(random), UsualFloat(random)}) {
      for (const int digits : {6, 9, 17})
        ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(Printed("%.*g", digits, value)));
      ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(Printed("%.*f", static_cast<int>(1 + random() % 20), value)));
      ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(Printed("%.*e", static_cast<int>(random() % 25), value)));
    }
  }
}

TEST(ParseFloat, EqualsStrtofOnRandomDoublesInManyFormats) {
  Random random(20240602);
  std::uniform_real_distribution<double> usual(-1000, 1000);
  for (int i = 0; i < 60000; ++i) {
    const double value = usual(random);
    for (const int digits : {6, 9, 15, 17})
      ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(Printed("%.*g", digits, value)));
    ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(Printed("%.*f", static_cast<int>(1 + random() % 20), value)));
  }
}

TEST(ParseFloat, EqualsStrtofOnFloatsPrintedInFull) {
  Random random(20240603);
  for (int i = 0; i < 30000; ++i) {
    const float value = AnyFloat(random);
    const std::string text = Printed("%.*f", 150, value);
    ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(text));
    EXPECT_EQ(Bits(ParseNumber(text).value()), Bits(value)) << text;
  }
}

TEST(ParseFloat, EqualsStrtofOnRandomDigits) {
  Random random(20240604);
  for (int i = 0; i < 300000; ++i) {
    std::string text = DigitString(random, 1 + random() % 30);
    if (random() % 4 != 0) text.insert(random() % (text.size() + 1), ".");
    if (random() % 2 != 0) {
      text += fmt::format("{}{}", random() % 2 != 0 ? 'e' : 'E', static_cast<int>(random() % 120) - 70);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(text));
  }
}

/// Numbers slightly below and above `digits`, and `digits` with zeros appended. `digits` has a dot, and its
/// last digit is not 0.
std::vector<std::string> Neighbours(const std::string& digits) {
  std::string less = digits;
  --less.back();
  std::string more = digits;
  if (more.back() != '9') ++more.back();
  return {less,         less + "9999999999999999999999",         more,
          digits + "1", digits + "0000000000000000000000000001", digits + "0000"};
}

TEST(ParseFloat, EqualsStrtofInTheMiddleBetweenFloatsAndBesides) {
  Random random(20240605);
  for (int i = 0; i < 40000; ++i) {
    const float value = i % 2 == 0 ? AnyFloat(random) : UsualFloat(random);
    const float next = std::nextafter(value, std::numeric_limits<float>::infinity());
    if (std::isinf(next)) continue;
    const double middle = (static_cast<double>(value) + static_cast<double>(next)) / 2;
    // 130 digits are enough for every midpoint; those of subnormals have up to 113.
    const std::string in_full = Printed("%.*e", 130, middle);
    const std::size_t exponent = in_full.find('e');
    const std::string digits = in_full.substr(0, in_full.find_last_not_of('0', exponent - 1) + 1);
    if (digits.back() == '.') continue;
    ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(digits + in_full.substr(exponent)));
    for (const std::string& neighbour : Neighbours(digits)) {
      ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(neighbour + in_full.substr(exponent)));
    }
    if (middle < 1e-3 || middle > 1e9) continue;
    // The fast path requires numbers without an exponent.
    std::string fixed = Printed("%.*f", 60, middle);
    fixed.erase(fixed.find_last_not_of('0') + 1);
    if (fixed.back() == '.') continue;
    ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(fixed));
    for (const std::string& neighbour : Neighbours(fixed)) ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(neighbour));
    for (const int places : {8, 9, 10, 11, 12, 13, 14, 15}) {
      ASSERT_NO_FATAL_FAILURE(ExpectAsStrtof(Printed("%.*f", places, middle)));
    }
  }
}

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> Whole(std::string_view text, std::uint64_t most = kMost) {
  std::uint64_t value = 0;
  if (!ParseUnsigned(text.data(), text.data() + text.size(), most, value)) return std::nullopt;
  return value;
}

TEST(ParseUnsigned, ReadsUpToTheGreatestThatIsAllowed) {
  EXPECT_EQ(Whole("0"), 0U);
  EXPECT_EQ(Whole("000000000000000000000000000042"), 42U);
  EXPECT_EQ(Whole("18446744073709551615"), kMost);
  EXPECT_EQ(Whole("18446744073709551616"), std::nullopt);
  EXPECT_EQ(Whole("99999999999999999999"), std::nullopt);
  EXPECT_EQ(Whole("340282366920938463463374607431768211457"), std::nullopt);
  EXPECT_EQ(Whole("7", 7), 7U);
  EXPECT_EQ(Whole("8", 7), std::nullopt);
  EXPECT_EQ(Whole("0", 0), 0U);
}

TEST(ParseUnsigned, RefusesWhatIsNotDigitsAlone) {
  for (const char* text :
       {"", "-", "-1", "-0", "+1", "1.0", "1e1", " 1", "1 ", "0x1", "a", "1a", "1:", "\xFF"}) {
    std::uint64_t value = 42;
    const std::string_view view = text;
    EXPECT_FALSE(ParseUnsigned(view.data(), view.data() + view.size(), kMost, value)) << text;
    EXPECT_EQ(value, 42U) << text;
  }
}

}  // namespace
}  // namespace warren::data
