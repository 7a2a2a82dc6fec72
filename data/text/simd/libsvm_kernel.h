// Ordinary LibSVM rows by vector instructions, written once; each <instruction set>.cc gives the few
// operations that differ and is compiled for it.
//
// A window of 64 bytes becomes four bit masks, one bit a byte: blanks, colons, dots, and what is no digit
// either. Words are found by counting trailing zeros, with no look at single bytes. Then the digits of the
// index and of the value are shuffled next to each other, the dot left out, and eight digits each are turned
// into two numbers by three multiply-adds (the scheme of simdjson and others; Mula and Langdale describe it).
// The value is number / 10^digits behind the dot, exactly rounded as in number.cc. Anything out of the
// ordinary is left to number.cc, or the whole row to the plain parser.
//
// Everything is in an unnamed namespace, and nothing of the library's is called: an inline function of a
// library, emitted here with AVX instructions, could be the copy that the linker keeps for the whole program,
// and that would crash on a CPU without them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/text/number.h"
#include "data/text/simd/kernels.h"

namespace warren::data::simd {
namespace {

/// Bits of the bytes of a window.
struct Window {
  std::uint64_t blank;  ///< ' ' and everything below it: blanks, tabs, line ends
  std::uint64_t colon;
  std::uint64_t dot;
  std::uint64_t other;  ///< none of these, and no digit
};

constexpr unsigned kWindow = 64;
/// Bytes that one load takes.
constexpr unsigned kLoad = 16;
/// Digits that become one number.
constexpr unsigned kHalf = 8;

constexpr double kPowersOfTen[] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7, 1e8,
                                   1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};
constexpr std::uint64_t kExactInDouble = std::uint64_t{1} << 53;
constexpr std::uint8_t kNothing = 0x80;  ///< a shuffle's byte that becomes zero

/// index[n]: n digits, right-aligned in the lower half. value[n][d]: n bytes whose d-th is the dot (d = n:
/// none), right-aligned in all of it.
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

/// minus: 1 for a negative number, else 0. Signs come at random: no branch.
float WithSign(float magnitude, std::uint32_t minus) {
  std::uint32_t bits = 0;
  __builtin_memcpy(&bits, &magnitude, sizeof(bits));
  bits |= minus << 31;
  __builtin_memcpy(&magnitude, &bits, sizeof(bits));
  return magnitude;
}

/// A whole number of up to 18 digits; how many there are is checked before.
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

  /// A new window, which begins at `base`.
  void Look(const char* base) {
    base_ = base;
    begin_ = 0;
    window_ = Isa::Look(base);
  }
  /// The window goes on at this place, which may be beyond it.
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

  /// One row. False: it is not ordinary.
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
    const std::size_t entries = out_.entries;
    entries_ = entries;
    columns_ = out_.columns;
    least_ = out_.least;
    if (!Features()) return false;
    out_.entries = entries_;
    out_.columns = columns_;
    out_.least = least_;
    out_.offsets[++out_.rows] = entries_;
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

  /// All features of the row. True: begin_ is behind its line end.
  bool Features() {
    for (;;) {
      while (window_.blank != 0) {
        const unsigned end = Lowest(window_.blank);
        if (end != begin_ && !Feature(end)) {
          if (base_[begin_] != '#') return false;
          return Comment();
        }
        window_.blank = DropLowest(window_.blank);
        begin_ = end + 1;
        const char separator = base_[end];
        if (separator != ' ') {
          if (IsLineEnd(separator)) {
            if (begin_ == kWindow) Look(base_ + begin_);
            return true;
          }
          if (separator != '\t') return false;
        }
      }
      // A word longer than a window.
      if (begin_ == 0) return base_[0] == '#' ? Comment() : false;
      Look(base_ + begin_);
    }
  }

  /// On to the end of the row.
  bool Comment() {
    const char* at = base_ + begin_;
    // There is a line end behind the text.
    while (!IsLineEnd(*at)) ++at;
    GoTo(at + 1);
    return true;
  }

  /// The word from begin_ to `end`. False: it is not ordinary, and neither is the row.
  bool Feature(unsigned end) {
    const std::uint64_t before_end = BitsBelow(end);
    const std::uint64_t colons = window_.colon & before_end;
    const std::uint64_t dots = window_.dot & before_end;
    const std::uint64_t others = window_.other & before_end;
    if (colons == 0) return IndexAlone(end, dots | others);
    const unsigned colon = Lowest(colons);
    const unsigned index_digits = colon - begin_;
    const unsigned minus = base_[colon + 1] == '-' ? 1 : 0;
    const unsigned value = colon + 1 + minus;
    const unsigned bytes = end - value;
    const unsigned dot = dots != 0 ? Lowest(dots) : end;
    const std::uint64_t odd =
        DropLowest(colons) | DropLowest(dots) | (others ^ (std::uint64_t{minus} << (colon + 1)));
    window_.colon = DropLowest(window_.colon);
    window_.dot &= ~before_end;
    window_.other &= ~before_end;
    const unsigned has_dot = dots != 0 ? 1 : 0;
    const bool plain = odd == 0 && dot >= value;
    if (!plain || index_digits - 1 >= kHalf || bytes - has_dot - 1 >= kHalf) {
      return plain ? LongFeature(colon, value, dot, end) : OddFeature(colon, end);
    }
    std::uint32_t index = 0;
    std::uint32_t number = 0;
    Isa::TwoNumbers(base_ + begin_, kShuffles.index[index_digits], base_ + value,
                    kShuffles.value[bytes][dot - value], index, number);
    const unsigned fraction = end - dot - has_dot;
    // Rounding twice cannot go wrong here: a quotient of eight digits that is not between two floats is more
    // than 2^-52 of itself away from there, and a double is nearer to it than that.
    const double wide = static_cast<double>(number) / kPowersOfTen[fraction];
    if (index < out_.first) return OddFeature(colon, end);
    Add(static_cast<Index>(index), WithSign(static_cast<float>(wide), minus));
    return true;
  }

  /// A feature of digits, at most one minus and at most one dot in the right places, but more digits: such as
  /// a double is printed with.
  __attribute__((noinline)) bool LongFeature(unsigned colon, unsigned value, unsigned dot, unsigned end) {
    const bool has_dot = dot != end;
    const unsigned fraction = has_dot ? end - dot - 1 : 0;
    // A zero before the dot is no digit that counts.
    const unsigned first = has_dot && dot == value + 1 && base_[value] == '0' ? dot + 1 : value;
    const unsigned bytes = end - first;
    const unsigned index_digits = colon - begin_;
    const bool dot_alone = first == dot && bytes == 1;
    if (bytes - 1 >= kLoad || index_digits - 1 >= kMostIndexDigits || dot_alone)
      return OddFeature(colon, end);
    std::uint32_t upper = 0;
    std::uint32_t lower = 0;
    Isa::TwoNumbers(nullptr, nullptr, base_ + first,
                    kShuffles.value[bytes][first > dot ? bytes : dot - first], upper, lower);
    const std::uint64_t number = std::uint64_t{upper} * 100000000 + lower;
    const double wide = static_cast<double>(number) / kPowersOfTen[fraction];
    const std::uint64_t index = WholeNumber(base_ + begin_, base_ + colon);
    if (number > kExactInDouble || IsBetweenFloats(wide) || index < out_.first) return OddFeature(colon, end);
    Add(static_cast<Index>(index), WithSign(static_cast<float>(wide), value - colon - 1));
    return true;
  }

  /// Any feature, or none.
  __attribute__((noinline)) bool OddFeature(unsigned colon, unsigned end) {
    const char* const word = base_ + begin_;
    const char* const index_end = base_ + colon;
    if (static_cast<unsigned>(index_end - word) - 1 >= kMostIndexDigits) return false;
    for (const char* at = word; at != index_end; ++at) {
      if (!IsDigit(*at)) return false;
    }
    const std::uint64_t index = WholeNumber(word, index_end);
    float value = 0;
    if (index < out_.first || !ParseFloat(index_end + 1, base_ + end, value)) return false;
    Add(static_cast<Index>(index), value);
    return true;
  }

  bool IndexAlone(unsigned end, std::uint64_t odd) {
    const unsigned digits = end - begin_;
    if (odd != 0 || digits > kMostIndexDigits) return false;
    const std::uint64_t index = WholeNumber(base_ + begin_, base_ + end);
    if (index < out_.first) return false;
    Add(static_cast<Index>(index), 1.0F);
    return true;
  }

  void Add(Index index, float value) {
    const auto from_zero = static_cast<Index>(index - out_.first);
    out_.indices[entries_] = from_zero;
    out_.values[entries_] = value;
    ++entries_;
    const std::uint64_t columns = std::uint64_t{from_zero} + 1;
    columns_ = columns > columns_ ? columns : columns_;
    least_ = from_zero < least_ ? from_zero : least_;
  }

  LibSvmRows<Index>& out_;
  const char* base_ = nullptr;
  unsigned begin_ = 0;  ///< of the next word, in the window; bits below are all gone
  Window window_{};
  std::size_t entries_ = 0;
  std::uint64_t columns_ = 0;
  Index least_ = 0;
};

template <typename Isa, typename Index>
void ReadLibSvmRows(LibSvmRows<Index>& out) {
  RowReader<Isa, Index>(out).ReadAll();
}

}  // namespace
}  // namespace warren::data::simd
