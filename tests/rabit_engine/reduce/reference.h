// The reference for the kernels: every operation on one element, written from its definition without sharing
// code with the kernels, and values that expose differences.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/reduce/kernels.h"

namespace warren::reference {

using Bytes = std::vector<std::byte>;

inline std::vector<const KernelTable*> Tables() {
  std::vector<const KernelTable*> tables{&PlainKernels()};
  if (const auto* table = Avx2Kernels()) tables.push_back(table);
  if (const auto* table = Avx512Kernels()) tables.push_back(table);
  return tables;
}

inline std::vector<std::pair<DataType, ReduceOp>> DefinedPairs() {
  std::vector<std::pair<DataType, ReduceOp>> pairs;
  for (int type = 0; type < kNumDataTypes; ++type) {
    for (int operation = 0; operation < kNumReduceOps; ++operation) {
      const std::pair pair(static_cast<DataType>(type), static_cast<ReduceOp>(operation));
      if (IsDefined(pair.first, pair.second)) pairs.push_back(pair);
    }
  }
  return pairs;
}

inline std::string Describe(const KernelTable& table, DataType type, ReduceOp operation) {
  return std::string(table.name) + " " + std::string(Name(type)) + " " + std::string(Name(operation));
}

/// Numbers of inputs to test.
inline constexpr std::size_t kWorlds[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33};

/// Pointers to the inputs, `skip` elements after their beginnings.
template <typename T>
std::vector<const void*> Pointers(const std::vector<std::vector<T>>& inputs, std::size_t skip = 0) {
  std::vector<const void*> pointers;
  pointers.reserve(inputs.size());
  for (const std::vector<T>& input : inputs) pointers.push_back(input.data() + skip);
  return pointers;
}

// ------------------------------------------------------------------------------------------- 16-bit floats

/// A 16-bit floating-point number in an IEEE-style format with these numbers of exponent and fraction bits.
template <int exponent_bits, int fraction_bits>
struct Small {
  static constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  static constexpr std::uint16_t kInfinity = ((1 << exponent_bits) - 1) << fraction_bits;
  static constexpr std::uint16_t kQuietBit = 1 << (fraction_bits - 1);

  std::uint16_t bits;

  bool is_nan() const { return (bits & 0x7fff) > kInfinity; }

  double value() const {
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    double magnitude = exponent == 0
                           ? std::ldexp(fraction, 1 - kBias - fraction_bits)
                           : std::ldexp(fraction + (1 << fraction_bits), exponent - kBias - fraction_bits);
    if ((bits & 0x7fff) == kInfinity) magnitude = std::numeric_limits<double>::infinity();
    if (is_nan()) magnitude = std::numeric_limits<double>::quiet_NaN();
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }

  /// Rounds to nearest, ties to even. `value` must not be NaN.
  static Small Nearest(float value) {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(static_cast<double>(value));
    if (std::isinf(magnitude)) return {static_cast<std::uint16_t>(sign | kInfinity)};
    if (magnitude == 0) return {sign};
    const int exponent = std::max(std::ilogb(magnitude), 1 - kBias);
    // The magnitude in units of the last place. The format counts these up from zero, so a carry increments
    // the exponent, and infinity follows the largest number.
    const double units = std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent));
    const double bits = units + std::ldexp(exponent - 1 + kBias, fraction_bits);
    return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::min<double>(bits, kInfinity)))};
  }

  Small Quiet() const { return is_nan() ? Small{static_cast<std::uint16_t>(bits | kQuietBit)} : *this; }
};
using Half = Small<5, 10>;
using Brain = Small<8, 7>;

// ------------------------------------------------------------------------------------------------ operations

template <typename T>
T Quiet(T nan) {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const Word quiet_bit = Word{1} << (std::numeric_limits<T>::digits - 2);
  return std::bit_cast<T>(std::bit_cast<Word>(nan) | quiet_bit);
}

template <typename T>
T Element(ReduceOp operation, T left, T right) {
  if (operation == ReduceOp::kMax) return left < right ? right : left;
  if (operation == ReduceOp::kMin) return right < left ? right : left;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(left)) return Quiet(left);
    if (std::isnan(right)) return Quiet(right);
    return operation == ReduceOp::kSum ? left + right : left * right;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    const std::uint64_t a = static_cast<Unsigned>(left);
    const std::uint64_t b = static_cast<Unsigned>(right);
    switch (operation) {
      case ReduceOp::kSum:
        return static_cast<T>(a + b);
      case ReduceOp::kProduct:
        return static_cast<T>(a * b);
      case ReduceOp::kBitOr:
        return static_cast<T>(a | b);
      case ReduceOp::kBitAnd:
        return static_cast<T>(a & b);
      default:
        return static_cast<T>(a ^ b);
    }
  }
}

/// Converts to float, exactly. A NaN keeps its payload; a binary16 NaN becomes quiet.
template <int e, int f>
float Widened(Small<e, f> value) {
  if (!value.is_nan()) return static_cast<float>(value.value());
  const std::uint32_t bits = std::is_same_v<Small<e, f>, Half> ? value.Quiet().bits : value.bits;
  return std::bit_cast<float>((bits & 0x8000u) << 16 | 0x7f80'0000u |
                              (bits & ((1u << f) - 1)) << (std::numeric_limits<float>::digits - 1 - f));
}

/// Rounds to the nearest T, ties to even. A NaN keeps the upper bits of its payload and becomes quiet.
template <typename T>
T Narrowed(float value) {
  if (!std::isnan(value)) return T::Nearest(value);
  constexpr int kFractionBits = std::bit_width(T::kQuietBit);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t payload =
      (bits & 0x7f'ffffu) >> (std::numeric_limits<float>::digits - 1 - kFractionBits);
  return {static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | T::kInfinity | T::kQuietBit | payload)};
}

/// The result for exactly two operands: with more, CombineAll rounds only once.
template <int e, int f>
Small<e, f> Element(ReduceOp operation, Small<e, f> left, Small<e, f> right) {
  if (operation == ReduceOp::kMax || operation == ReduceOp::kMin) {
    const bool takes_right =
        operation == ReduceOp::kMax ? left.value() < right.value() : right.value() < left.value();
    const Small<e, f> chosen = takes_right ? right : left;
    // Widening makes a binary16 NaN quiet.
    return std::is_same_v<Small<e, f>, Half> ? chosen.Quiet() : chosen;
  }
  return Narrowed<Small<e, f>>(Element(operation, Widened(left), Widened(right)));
}

/// Calls `work` with a value of the C++ type of `type`.
template <typename Work>
auto WithType(DataType type, Work work) {
  switch (type) {
    case DataType::kChar:
      return work(static_cast<signed char>(0));
    case DataType::kUChar:
      return work(static_cast<unsigned char>(0));
    case DataType::kInt:
      return work(std::int32_t{});
    case DataType::kUInt:
      return work(std::uint32_t{});
    case DataType::kLong:
    case DataType::kLongLong:
      return work(std::int64_t{});
    case DataType::kULong:
    case DataType::kULongLong:
      return work(std::uint64_t{});
    case DataType::kFloat:
      return work(float{});
    case DataType::kDouble:
      return work(double{});
    case DataType::kFloat16:
      return work(Half{});
    default:
      return work(Brain{});
  }
}

/// left op right, element by element.
inline Bytes Combine(DataType type, ReduceOp operation, const Bytes& left, const Bytes& right) {
  Bytes out(left.size());
  WithType(type, [&]<typename T>(T) {
    for (std::size_t at = 0; at < left.size(); at += sizeof(T)) {
      T a;
      T b;
      std::memcpy(&a, &left[at], sizeof(T));
      std::memcpy(&b, &right[at], sizeof(T));
      const T result = Element(operation, a, b);
      std::memcpy(&out[at], &result, sizeof(T));
    }
  });
  return out;
}

inline Bytes Widened(DataType type, const Bytes& values) {
  Bytes wide(2 * values.size());
  WithType(type, [&]<typename T>(T) {
    if constexpr (std::is_class_v<T>) {
      for (std::size_t at = 0; at < values.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, &values[at], sizeof(T));
        const float number = Widened(value);
        std::memcpy(&wide[2 * at], &number, sizeof(number));
      }
    }
  });
  return wide;
}

inline Bytes Narrowed(DataType type, const Bytes& values) {
  Bytes narrow(values.size() / 2);
  WithType(type, [&]<typename T>(T) {
    if constexpr (std::is_class_v<T>) {
      for (std::size_t at = 0; at < narrow.size(); at += sizeof(T)) {
        float value = 0;
        std::memcpy(&value, &values[2 * at], sizeof(value));
        const T number = Narrowed<T>(value);
        std::memcpy(&narrow[at], &number, sizeof(T));
      }
    }
  });
  return narrow;
}

inline bool IsSixteenBits(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBFloat16;
}

/// Reduces in the tree of order.h, straight from its definition: neighbors are combined in rounds. Sums and
/// products of 16-bit floats are computed in float and rounded once, at the end.
inline Bytes CombineAll(DataType type, ReduceOp operation, std::vector<Bytes> round) {
  if (IsSixteenBits(type) && round.size() > 1 &&
      (operation == ReduceOp::kSum || operation == ReduceOp::kProduct)) {
    for (Bytes& values : round) values = Widened(type, values);
    return Narrowed(type, CombineAll(DataType::kFloat, operation, std::move(round)));
  }
  while (round.size() > 1) {
    std::vector<Bytes> next;
    for (std::size_t i = 0; i + 1 < round.size(); i += 2) {
      next.push_back(Combine(type, operation, round[i], round[i + 1]));
    }
    if (round.size() % 2 == 1) next.push_back(round.back());
    round = std::move(next);
  }
  return round.front();
}

// ---------------------------------------------------------------------------------------------------- values

/// One third each of special values (NaN with payloads, quiet and signaling; infinities; zeros; denormals;
/// extremes), random bits and everyday numbers.
inline Bytes Values(DataType type, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return WithType(type, [&]<typename T>(T) {
    std::vector<std::uint64_t> special;
    constexpr int kBits = 8 * sizeof(T);
    constexpr std::uint64_t kSign = 1ull << (kBits - 1);
    std::uint64_t infinity = 0;
    if constexpr (std::is_integral_v<T>) {
      special = {0, 1, 2, 3, 0x7f, kSign - 1, kSign, kSign + 1, ~0ull, ~1ull};
    } else {
      if constexpr (sizeof(T) == 8) {
        infinity = 0x7ff0ull << 48;
      } else if constexpr (sizeof(T) == 4) {
        infinity = 0x7f80ull << 16;
      } else {
        infinity = T::kInfinity;
      }
      const std::uint64_t first =
          (infinity & (~infinity + 1)) >> 1;  // the fraction's top bit, which is set in a quiet NaN
      for (const std::uint64_t magnitude :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, first, (first << 1) - 1, first << 1,
            (first << 1) + 1, infinity - 1, infinity - 2, infinity, infinity + 1, infinity + first,
            infinity + first + 1, infinity + first + 2, infinity + (first << 1) - 1}) {
        special.push_back(magnitude);
        special.push_back(magnitude | kSign);
      }
    }
    Bytes values(count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t bits = random();
      const auto kind = random() % 3;
      if (kind == 0) bits = special[random() % special.size()];
      T value;
      std::memcpy(&value, &bits, sizeof(T));  // little-endian machines only, like the other tests
      if (kind == 1) {
        const double everyday = std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits)), -60);
        if constexpr (std::is_integral_v<T>) {
          value = static_cast<T>(bits % 100);
        } else if constexpr (std::is_floating_point_v<T>) {
          value = static_cast<T>(everyday);
        } else {
          value = T::Nearest(static_cast<float>(everyday));
        }
      }
      std::memcpy(&values[i * sizeof(T)], &value, sizeof(T));
    }
    return values;
  });
}

/// Describes the first difference, e.g. "element 3: 0x7fc00001 instead of 0x7fc00000"; empty if both are
/// equal.
inline std::string Difference(DataType type, const std::byte* got, const Bytes& wanted) {
  const std::size_t bytes = SizeOf(type);
  for (std::size_t at = 0; at < wanted.size(); at += bytes) {
    if (std::memcmp(got + at, &wanted[at], bytes) == 0) continue;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, got + at, bytes);
    std::memcpy(&b, &wanted[at], bytes);
    char text[100];
    std::snprintf(text, sizeof(text), "element %zu: %#llx instead of %#llx", at / bytes,
                  static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
    return text;
  }
  return {};
}

}  // namespace warren::reference
