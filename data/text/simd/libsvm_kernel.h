// Parses ordinary LibSVM rows with vector instructions. Each <instruction set>.cc includes this code,
// supplies the few operations that differ and is compiled for its instruction set.
//
// A window of 64 bytes becomes bit masks, one bit per byte: blanks, colons, dots, minuses, and other bytes
// that are not digits. Words are found by counting trailing zeros, without examining single bytes. Then the
// digits of the index and of the value are shuffled next to each other, without the dot, and three
// multiply-adds turn them into two numbers of up to eight digits (the scheme of simdjson and others,
// described by Mula and Langdale). The value is number / 10^(digits after the dot), exactly rounded as in
// number.cc. Windows in which all values are single digits, as in one-hot data, have a shorter path. Unusual
// numbers are left to number.cc, and unusual rows to the plain parser.
//
// Everything is in an unnamed namespace, and no library function is called: an inline function of a library,
// compiled here with AVX instructions, could be the copy that the linker keeps for the whole program, which
// would crash on a CPU without AVX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/text/number.h"
#include "data/text/simd/kernels.h"

namespace warren::data::simd {
namespace {

/// One bit per byte of a window.
struct Window {
  std::uint64_t blank;  ///< ' ' and all bytes below it: blanks, tabs, line ends
  std::uint64_t space;  ///< ' '
  std::uint64_t colon;
  std::uint64_t dot;
  std::uint64_t minus;
  std::uint64_t other;  ///< none of the above, and not a digit
};

constexpr unsigned kWindow = 64;
/// Bytes per load.
constexpr unsigned kLoad = 16;
/// The maximum number of digits in half a vector: TwoNumbers converts each half to one number.
constexpr unsigned kHalf = 8;

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                   1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
/// The maximum number of digits of a value that LongFeature reads. So many digits fit in 63 bits. Converting
/// them to double (an error of up to 1 unit in the last place of the result) and dividing by a power of ten,
/// which is exact in double (another half unit), gives a result that is wrong by less than 1.5 units.
constexpr unsigned kMostDigits = 18;
/// kScales[n]: the divisor of a number whose dot and fraction together have n bytes.
constexpr double kScales[] = {1e0, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
constexpr std::uint8_t kNothing = 0x80;  ///< a shuffle index that yields zero

/// index[n] right-aligns n digits in the lower half. value[n][d] right-aligns n bytes, of which byte d is the
/// dot (d = n: no dot), in the whole vector.
struct Shuffles {
  alignas(kLoad) std::uint8_t index[kHalf + 1][kLoad];
  alignas(kLoad) std::uint8_t value[kLoad + 1][kLoad + 1][kLoad];
};

constexpr Shuffles MakeShuffles() {
  Shuffles all{};
  for (unsigned n = 0; n <= kHalf; ++n) {
    for (unsigned lane = 0; lane < kLoad; ++lane) {
      const bool used = lane < kHalf && lane + n >= kHalf;
      all.index[n][lane] = used ? static_cast<std::uint8_t>(lane + n - kHalf) : kNothing;
    }
  }
  for (unsigned n = 0; n <= kLoad; ++n) {
    for (unsigned dot = 0; dot <= n; ++dot) {
      for (unsigned lane = 0; lane < kLoad; ++lane) all.value[n][dot][lane] = kNothing;
      unsigned lane = kLoad;
      for (unsigned byte = n; byte-- > 0;) {
        if (byte != dot) all.value[n][dot][--lane] = static_cast<std::uint8_t>(byte);
      }
    }
  }
  return all;
}

alignas(kWindow) constexpr Shuffles kShuffles = MakeShuffles();

bool IsLineEnd(char c) {
  return c == '\n' || c == '\r';
}
bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

std::uint64_t BitsBelow(unsigned position) {
  return (std::uint64_t{1} << position) - 1;
}
std::uint64_t DropLowest(std::uint64_t bits) {
  return bits & (bits - 1);
}
unsigned Lowest(std::uint64_t bits) {
  return static_cast<unsigned>(__builtin_ctzll(bits));
}

/// Whether `value` is within 3 units in the last place of the midpoint of two floats. If it is not, a value
/// that is wrong by less than that is rounded to the same float as the exact one. Not for values that are
/// subnormal as floats.
bool IsNearHalfway(double value) {
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  constexpr std::uint64_t kHalfway = 0x10000000;  // in the 29 bits of a double's mantissa that floats lack
  return (bits & 0x1FFFFFFF) - (kHalfway - 3) <= 6;
}

/// `minus` is 1 for a negative number, otherwise 0. Signs are unpredictable, so this has no branch.
float WithSign(float magnitude, std::uint32_t minus) {
  std::uint32_t bits = 0;
  __builtin_memcpy(&bits, &magnitude, sizeof(bits));
  bits |= minus << 31;
  __builtin_memcpy(&magnitude, &bits, sizeof(bits));
  return magnitude;
}

/// Parses a whole number of up to 18 digits, which the caller has checked.
std::uint64_t WholeNumber(const char* begin, const char* end) {
  std::uint64_t number = 0;
  for (; begin != end; ++begin) number = number * 10 + static_cast<unsigned>(*begin - '0');
  return number;
}

/// Parses a whole number of 1 to 8 digits, which the caller has checked. All digits are combined at once, to
/// four, two and one number (as described by Johnny Lee and Daniel Lemire). Reads eight bytes.
std::uint64_t UpToEightDigits(const char* begin, unsigned digits) {
  std::uint64_t number = 0;
  __builtin_memcpy(&number, begin, sizeof(number));
  // The first digit is in the lowest byte. The bytes after the last digit are shifted out.
  number = (number - 0x3030303030303030) << (64 - 8 * digits);
  number = (number * (10 << 8 | 1) >> 8) & 0x00FF00FF00FF00FF;
  number = (number * (100 << 16 | 1) >> 16) & 0x0000FFFF0000FFFF;
  return number * (std::uint64_t{10000} << 32 | 1) >> 32;
}

template <typename Isa, typename Index>
class RowReader {
 public:
  explicit RowReader(LibSvmRows<Index>& out) : out_(out) {}

  void ReadAll() {
    Look(out_.at);
    while (out_.at < out_.end) {
      if (!Row()) return;
      out_.at = base_ + begin_;
    }
    out_.at = out_.end;
  }

 private:
  static constexpr unsigned kMostIndexDigits = sizeof(Index) == 4 ? 9 : 18;

  /// Loads a new window that begins at `base`.
  void Look(const char* base) {
    base_ = base;
    begin_ = 0;
    window_ = Isa::Look(base);
  }
  /// Advances the window to `place`, which may be beyond it.
  void GoTo(const char* place) {
    const auto position = static_cast<std::size_t>(place - base_);
    if (position >= kWindow) return Look(place);
    begin_ = static_cast<unsigned>(position);
    window_.blank &= ~BitsBelow(begin_);
  }

  /// Reads one row. Returns false if it is not ordinary.
  bool Row() {
    const char* at = base_ + begin_;
    while (at < out_.end && (IsBlank(*at) || IsLineEnd(*at))) ++at;
    if (at >= out_.end) {
      GoTo(at);
      return true;
    }
    if (!Label(at)) return false;
    while (IsBlank(*at)) ++at;
    if (out_.qids != nullptr && !Query(at)) return false;
    GoTo(at);
    if (!Features()) return false;
    out_.offsets[++out_.rows] = out_.entries;
    return true;
  }

  static const char* WordEnd(const char* at) {
    while (static_cast<unsigned char>(*at) > ' ') ++at;
    return at;
  }

  bool Label(const char*& at) {
    float& label = out_.labels[out_.rows];
    if (out_.weights == nullptr && IsDigit(*at) && static_cast<unsigned char>(at[1]) <= ' ') {
      label = static_cast<float>(*at - '0');
      ++at;
      return true;
    }
    const char* const end = WordEnd(at);
    const char* colon = at;
    while (colon != end && *colon != ':') ++colon;
    if (!ParseFloat(at, colon, label)) return false;
    if (out_.weights != nullptr) {
      float& weight = out_.weights[out_.rows];
      weight = 1;
      if (colon != end && !ParseFloat(colon + 1, end, weight)) return false;
    } else if (colon != end) {
      return false;
    }
    at = end;
    return true;
  }

  bool Query(const char*& at) {
    constexpr int kMostQueryDigits = 18;
    if (at[0] != 'q' || at[1] != 'i' || at[2] != 'd' || at[3] != ':') return false;
    const char* const begin = at + 4;
    const char* end = begin;
    while (end - begin <= kMostQueryDigits && IsDigit(*end)) ++end;
    if (end == begin || end - begin > kMostQueryDigits || static_cast<unsigned char>(*end) > ' ')
      return false;
    out_.qids[out_.rows] = WholeNumber(begin, end);
    at = end;
    while (IsBlank(*at)) ++at;
    return true;
  }

  struct Entry {
    Index index;  ///< as written
    float value;
  };

  /// Reads all features of the row. Returns true with begin_ after the row's line end, or false if the row is
  /// not ordinary; nothing of it is then kept.
  ///
  /// All state that changes from word to word is in local variables, which the compiler keeps in registers;
  /// members would be kept in memory for the functions called here.
  bool Features() {
    Window window = window_;
    const char* base = base_;
    unsigned begin = begin_;
    std::size_t entries = out_.entries;
    for (;;) {
      // One bit for each byte before the current word.
      std::uint64_t before = BitsBelow(begin);
      if (const std::uint64_t colons = SingleDigitValues(window, before)) {
        begin = ReadSingleDigitValues(base, begin, colons, entries);
        before = BitsBelow(begin);
        window.blank &= ~before;
      }
      while (window.blank != 0) {
        const unsigned end = Lowest(window.blank);
        const std::uint64_t end_bit = std::uint64_t{1} << end;
        if (end != begin) {
          const std::uint64_t word = BitsBelow(end) & ~before;
          const std::uint64_t colons = window.colon & word;
          const std::uint64_t dots = window.dot & word;
          const std::uint64_t minuses = window.minus & word;
          const unsigned colon = Lowest(colons | end_bit);
          const unsigned dot = Lowest(dots | end_bit);
          const unsigned minus = minuses != 0 ? 1 : 0;
          const unsigned has_dot = dots != 0 ? 1 : 0;
          const unsigned value = colon + 1 + minus;
          const unsigned index_digits = colon - begin;
          const unsigned bytes = end - value;
          // Whether the word has one colon, at most one minus and at most one dot, all in the right places,
          // and otherwise digits. Without a colon, `bytes` wraps around.
          const bool plain = (DropLowest(colons) | DropLowest(dots) | (dots & (colons - 1)) |
                              (minuses & ~(colons << 1)) | (window.other & word)) == 0;
          if (plain && index_digits - 1 < kHalf && bytes - has_dot - 1 < kHalf) [[likely]] {
            std::uint32_t index = 0;
            std::uint32_t number = 0;
            Isa::TwoNumbers(base + begin, kShuffles.index[index_digits], base + value,
                            kShuffles.value[bytes][dot - value], index, number);
            // Rounding twice is exact here: a quotient of eight digits that is not halfway between two floats
            // is further than 2^-52 of its value from any halfway point, and the double is nearer than that
            // to the quotient.
            const double wide = static_cast<double>(number) / kScales[end - dot];
            Add(entries, static_cast<Index>(index), WithSign(static_cast<float>(wide), minus));
          } else {
            Entry entry{};
            const char* const at = base + begin;
            const bool is_long = plain && colons != 0;
            if (!(is_long ? LongFeature(at, index_digits, value - begin, dot - begin, end - begin, entry)
                          : OddFeature(at, index_digits, end - begin, entry))) {
              base_ = base;
              begin_ = begin;
              window_ = window;
              return *at == '#' && Comment(entries);
            }
            Add(entries, entry.index, entry.value);
          }
          before = end_bit | BitsBelow(end);
        }
        window.blank = DropLowest(window.blank);
        begin = end + 1;
        const char separator = base[end];
        if (separator != ' ') {
          if (IsLineEnd(separator)) {
            base_ = base;
            begin_ = begin;
            window_ = window;
            return Keep(entries);
          }
          if (separator != '\t') return false;
        }
      }
      if (begin == 0) {
        // The word is longer than a window.
        base_ = base;
        begin_ = 0;
        return base[0] == '#' && Comment(entries);
      }
      // The word continues past the window, or begins after it: look again from its beginning.
      base += begin;
      begin = 0;
      window = Isa::Look(base);
    }
  }

  void Add(std::size_t& entries, Index index, float value) {
    out_.indices[entries] = static_cast<Index>(index - out_.first);
    out_.values[entries] = value;
    ++entries;
  }

  /// Returns the colons of the words from the window's current word to the first blank that is not a space,
  /// if each of these words is an index, a colon and a single digit, and each is followed by one blank, as in
  /// "3:1 17:1 ". Returns 0 if any word differs. The colon of a word that ends with the window, or continues
  /// after it, is left out, but what the window has of it must not differ.
  static std::uint64_t SingleDigitValues(const Window& window, std::uint64_t before) {
    const std::uint64_t stops = window.blank & ~window.space & ~before;
    const std::uint64_t ahead = (stops ^ (stops - 1)) & ~before;
    const std::uint64_t colons = window.colon & ahead;
    const std::uint64_t different = ((window.dot | window.minus | window.other) & ahead) |
                                    ((window.blank & ahead) ^ colons << 2) |
                                    (colons << 1 & (window.colon | window.blank));
    return different == 0 ? colons & BitsBelow(kWindow - 2) : 0;
  }

  /// Reads the words with these colons; the first one begins at `begin`. Stops before a word whose index has
  /// too many digits. Returns the position of the byte that follows the last word read, or `begin`.
  unsigned ReadSingleDigitValues(const char* base, unsigned begin, std::uint64_t colons,
                                 std::size_t& entries) {
    static constexpr float kValues[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    unsigned end = begin;
    do {
      const unsigned colon = Lowest(colons);
      const unsigned index_digits = colon - begin;
      if (index_digits - 1 >= kHalf) break;
      Add(entries, static_cast<Index>(UpToEightDigits(base + begin, index_digits)),
          kValues[base[colon + 1] - '0']);
      end = colon + 2;
      begin = end + 1;
      colons = DropLowest(colons);
    } while (colons != 0);
    return end;
  }

  /// Includes the row's entries, which have been written after those of earlier rows, in the output. Returns
  /// false, and includes nothing, if an index is less than the first one allowed.
  bool Keep(std::size_t entries) {
    const Index* const indices = out_.indices + out_.entries;
    const std::size_t count = entries - out_.entries;
    if (count != 0) {
      // A count of this type, so that GCC vectorizes the loop. It cannot wrap around: no row has 2^32 entries
      // (kMostRowBytes).
      Index descents = 0;
      for (std::size_t i = 1; i < count; ++i) descents += indices[i - 1] < indices[i] ? 0 : 1;
      Index least = indices[0];
      Index greatest = indices[count - 1];
      if (descents != 0) {
        out_.ascending = false;
        for (std::size_t i = 0; i < count; ++i) {
          least = indices[i] < least ? indices[i] : least;
          greatest = indices[i] > greatest ? indices[i] : greatest;
        }
      }
      // Index 0 has become the greatest number if indices count from 1. No other index is that great.
      if (greatest == static_cast<Index>(-1)) return false;
      const std::uint64_t columns = std::uint64_t{greatest} + 1;
      out_.columns = columns > out_.columns ? columns : out_.columns;
      out_.least = least < out_.least ? least : out_.least;
    }
    out_.entries = entries;
    return true;
  }

  /// Keeps the row's entries and skips its comment, which begins at begin_.
  bool Comment(std::size_t entries) {
    const char* at = base_ + begin_;
    // The text ends with a line end.
    while (!IsLineEnd(*at)) ++at;
    GoTo(at + 1);
    return Keep(entries);
  }

  /// Reads a feature of digits, at most one minus and at most one dot in the right places, but with more
  /// digits than usual, as in printed doubles, or with too few, which are left to OddFeature. `index_digits`
  /// is the position of the colon; `value` follows it and the minus; `dot` equals `end` if there is no dot.
  /// Returns false if the feature, and thus the row, is not ordinary.
  __attribute__((noinline)) static bool LongFeature(const char* word, unsigned index_digits, unsigned value,
                                                    unsigned dot, unsigned end, Entry& entry) {
    const bool has_dot = dot != end;
    const unsigned fraction = has_dot ? end - dot - 1 : 0;
    // A zero before the dot is not significant.
    const bool zero = has_dot && dot == value + 1 && word[value] == '0';
    const unsigned first = zero ? dot + 1 : value;
    const unsigned bytes = end - first;
    const bool dot_counts = has_dot && !zero;
    const unsigned head = bytes < kLoad ? bytes : kLoad;
    const unsigned dot_at = dot_counts ? dot - first : head;
    if (bytes - dot_counts - 1 >= kMostDigits || (dot_counts && dot_at >= head) ||
        index_digits - 1 >= kMostIndexDigits) {
      return OddFeature(word, index_digits, end, entry);
    }
    std::uint32_t upper = 0;
    std::uint32_t lower = 0;
    Isa::TwoNumbers(nullptr, nullptr, word + first, kShuffles.value[head][dot_at], upper, lower);
    std::uint64_t number = std::uint64_t{upper} * 100000000 + lower;
    for (unsigned at = first + head; at != end; ++at)
      number = number * 10 + static_cast<unsigned>(word[at] - '0');
    const double wide = static_cast<double>(static_cast<std::int64_t>(number)) / kPowersOfTen[fraction];
    if (IsNearHalfway(wide)) return OddFeature(word, index_digits, end, entry);
    entry = {static_cast<Index>(WholeNumber(word, word + index_digits)),
             WithSign(static_cast<float>(wide), value - index_digits - 1)};
    return true;
  }

  /// Reads any other feature, including an index without a value, for which `index_digits` equals `end`.
  /// Returns false if it is not ordinary.
  __attribute__((noinline)) static bool OddFeature(const char* word, unsigned index_digits, unsigned end,
                                                   Entry& entry) {
    if (index_digits - 1 >= kMostIndexDigits) return false;
    const char* const colon = word + index_digits;
    for (const char* at = word; at != colon; ++at) {
      if (!IsDigit(*at)) return false;
    }
    entry = {static_cast<Index>(WholeNumber(word, colon)), 1.0F};
    return index_digits == end || ParseFloat(colon + 1, word + end, entry.value);
  }

  LibSvmRows<Index>& out_;
  const char* base_ = nullptr;
  unsigned begin_ = 0;  ///< the next word's position in the window; no bit of window_.blank is below it
  Window window_{};
};

template <typename Isa, typename Index>
void ReadLibSvmRows(LibSvmRows<Index>& out) {
  RowReader<Isa, Index>(out).ReadAll();
}

}  // namespace
}  // namespace warren::data::simd
