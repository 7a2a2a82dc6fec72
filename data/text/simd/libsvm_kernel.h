// Parses ordinary LibSVM rows with vector instructions. Each <instruction set>.cc includes this code,
// supplies the few operations that differ and is compiled for its instruction set.
//
// A window of 64 bytes becomes four bit masks, one bit per byte: blanks, colons, dots, and other bytes that
// are not digits. Words are found by counting trailing zeros, without examining single bytes. Then the digits
// of the index and of the value are shuffled next to each other, without the dot, and three multiply-adds
// turn them into two numbers of up to eight digits (the scheme of simdjson and others, described by Mula and
// Langdale). The value is number / 10^(digits after the dot), exactly rounded as in number.cc. Unusual
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
  std::uint64_t colon;
  std::uint64_t dot;
  std::uint64_t other;  ///< none of the above, and not a digit
};

constexpr unsigned kWindow = 64;
/// Bytes per load.
constexpr unsigned kLoad = 16;
/// Digits per number.
constexpr unsigned kHalf = 8;

constexpr double kPowersOfTen[] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7, 1e8,
                                   1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};
constexpr std::uint64_t kExactInDouble = std::uint64_t{1} << 53;
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

bool IsBetweenFloats(double value) {
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x1FFFFFFF) == 0x10000000;
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
    const std::uint64_t ahead = ~BitsBelow(begin_);
    window_.blank &= ahead;
    window_.colon &= ahead;
    window_.dot &= ahead;
    window_.other &= ahead;
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
    constexpr int kMostDigits = 18;
    if (at[0] != 'q' || at[1] != 'i' || at[2] != 'd' || at[3] != ':') return false;
    const char* const begin = at + 4;
    const char* end = begin;
    while (end - begin <= kMostDigits && IsDigit(*end)) ++end;
    if (end == begin || end - begin > kMostDigits || static_cast<unsigned char>(*end) > ' ') return false;
    out_.qids[out_.rows] = WholeNumber(begin, end);
    at = end;
    while (IsBlank(*at)) ++at;
    return true;
  }

  /// Positions of the parts of a word in a window.
  struct Word {
    unsigned begin;
    unsigned colon;
    unsigned value;  ///< after colon and minus
    unsigned dot;    ///< `end` if there is no dot
    unsigned end;
  };
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
    std::uint64_t greatest = 0;
    Index least = out_.least;
    Index* const indices = out_.indices;
    float* const values = out_.values;
    const Index first = out_.first;
    for (;;) {
      while (window.blank != 0) {
        const unsigned end = Lowest(window.blank);
        if (end != begin) {
          const std::uint64_t before_end = ~window.blank & (window.blank - 1);
          const std::uint64_t colons = window.colon & before_end;
          const std::uint64_t dots = window.dot & before_end;
          const std::uint64_t others = window.other & before_end;
          const unsigned colon = colons != 0 ? Lowest(colons) : end;
          const unsigned minus = base[colon + 1] == '-' ? 1 : 0;
          const unsigned value = colon + 1 + minus;
          const unsigned has_dot = dots != 0 ? 1 : 0;
          const unsigned dot = has_dot != 0 ? Lowest(dots) : end;
          const unsigned index_digits = colon - begin;
          const unsigned bytes = end - value;
          const std::uint64_t odd =
              DropLowest(colons) | DropLowest(dots) | (others ^ (std::uint64_t{minus} << (colon & 63) << 1));
          // Whether the word has one colon, at most one minus and at most one dot, all in the right places,
          // and otherwise digits. Without a colon, `bytes` wraps around.
          const bool plain = odd == 0 && dot >= value && colons != 0;
          Entry entry;
          if (plain && index_digits - 1 < kHalf && bytes - has_dot - 1 < kHalf) [[likely]] {
            std::uint32_t index = 0;
            std::uint32_t number = 0;
            Isa::TwoNumbers(base + begin, kShuffles.index[index_digits], base + value,
                            kShuffles.value[bytes][dot - value], index, number);
            // Rounding twice is exact here: a quotient of eight digits that is not halfway between two floats
            // is further than 2^-52 of its value from any halfway point, and the double is nearer than that
            // to the quotient.
            const double wide = static_cast<double>(number) / kPowersOfTen[end - dot - has_dot];
            entry = {static_cast<Index>(index), WithSign(static_cast<float>(wide), minus)};
          } else {
            Entry other{};
            const Word word{begin, colon, value, dot, end};
            if (!(plain ? LongFeature(base, word, other) : OddFeature(base, word, other))) {
              window_ = window;
              base_ = base;
              begin_ = begin;
              return base[begin] == '#' && Comment(entries, greatest, least);
            }
            entry = other;
          }
          window.colon &= ~before_end;
          window.dot &= ~before_end;
          window.other &= ~before_end;
          if (entry.index < first) [[unlikely]] {
            return false;
          }
          const auto from_zero = static_cast<Index>(entry.index - first);
          indices[entries] = from_zero;
          values[entries] = entry.value;
          ++entries;
          const std::uint64_t columns = std::uint64_t{from_zero} + 1;
          greatest = columns > greatest ? columns : greatest;
          least = from_zero < least ? from_zero : least;
        }
        window.blank = DropLowest(window.blank);
        begin = end + 1;
        const char separator = base[end];
        if (separator != ' ') {
          if (IsLineEnd(separator)) {
            window_ = window;
            base_ = base;
            begin_ = begin;
            if (begin == kWindow) Look(base + begin);
            Keep(entries, greatest, least);
            return true;
          }
          if (separator != '\t') return false;
        }
      }
      if (begin == 0) {
        // The word is longer than a window.
        base_ = base;
        begin_ = 0;
        return base[0] == '#' && Comment(entries, greatest, least);
      }
      // The word continues past the window, or begins after it: look again from its beginning.
      base += begin;
      begin = 0;
      window = Isa::Look(base);
    }
  }

  /// Makes the row's entries, which have been written after those of earlier rows, part of the output.
  void Keep(std::size_t entries, std::uint64_t columns, Index least) {
    out_.entries = entries;
    out_.columns = columns > out_.columns ? columns : out_.columns;
    out_.least = least;
  }

  /// Keeps the row's entries and skips its comment, which begins at begin_.
  bool Comment(std::size_t entries, std::uint64_t columns, Index least) {
    const char* at = base_ + begin_;
    // The text ends with a line end.
    while (!IsLineEnd(*at)) ++at;
    GoTo(at + 1);
    Keep(entries, columns, least);
    return true;
  }

  /// Reads a feature of digits, at most one minus and at most one dot in the right places, but with more
  /// digits than usual, as in printed doubles. Returns false if the feature, and thus the row, is not
  /// ordinary.
  __attribute__((noinline)) static bool LongFeature(const char* base, const Word& word, Entry& entry) {
    const bool has_dot = word.dot != word.end;
    const unsigned fraction = has_dot ? word.end - word.dot - 1 : 0;
    // A zero before the dot is not significant.
    const bool zero = has_dot && word.dot == word.value + 1 && base[word.value] == '0';
    const unsigned first = zero ? word.dot + 1 : word.value;
    const unsigned bytes = word.end - first;
    const unsigned index_digits = word.colon - word.begin;
    const bool dot_alone = first == word.dot && bytes == 1;
    if (bytes - 1 >= kLoad || index_digits - 1 >= kMostIndexDigits || dot_alone)
      return OddFeature(base, word, entry);
    std::uint32_t upper = 0;
    std::uint32_t lower = 0;
    Isa::TwoNumbers(nullptr, nullptr, base + first, kShuffles.value[bytes][zero ? bytes : word.dot - first],
                    upper, lower);
    const std::uint64_t number = std::uint64_t{upper} * 100000000 + lower;
    const double wide = static_cast<double>(number) / kPowersOfTen[fraction];
    if (number > kExactInDouble || IsBetweenFloats(wide)) return OddFeature(base, word, entry);
    entry = {static_cast<Index>(WholeNumber(base + word.begin, base + word.colon)),
             WithSign(static_cast<float>(wide), word.value - word.colon - 1)};
    return true;
  }

  /// Reads any other feature, including an index without a value. Returns false if it is not ordinary.
  __attribute__((noinline)) static bool OddFeature(const char* base, const Word& word, Entry& entry) {
    const char* const index = base + word.begin;
    const char* const index_end = base + word.colon;
    if (static_cast<unsigned>(index_end - index) - 1 >= kMostIndexDigits) return false;
    for (const char* at = index; at != index_end; ++at) {
      if (!IsDigit(*at)) return false;
    }
    entry = {static_cast<Index>(WholeNumber(index, index_end)), 1.0F};
    return word.colon == word.end || ParseFloat(index_end + 1, base + word.end, entry.value);
  }

  LibSvmRows<Index>& out_;
  const char* base_ = nullptr;
  unsigned begin_ = 0;  ///< the next word's position in the window; the masks' bits below it are cleared
  Window window_{};
};

template <typename Isa, typename Index>
void ReadLibSvmRows(LibSvmRows<Index>& out) {
  RowReader<Isa, Index>(out).ReadAll();
}

}  // namespace
}  // namespace warren::data::simd
