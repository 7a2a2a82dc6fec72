#include "rabit_engine/device/host_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace warren::device {
namespace {

struct Float8Format {
  int fraction_bits;
  int bias;
  unsigned greatest;  ///< the bits of the greatest finite number
  unsigned nan;       ///< the bits of a NaN
};
constexpr Float8Format kE4M3{3, 7, 0x7e, 0x7f};
constexpr Float8Format kE5M2{2, 15, 0x7b, 0x7f};

constexpr const Float8Format& FormatOf(Type type) {
  return type == Type::kFloat8E4M3 ? kE4M3 : kE5M2;
}

/// Reduces 8-bit floating-point numbers: `destination` holds the left operands and receives the results,
/// `source` holds the right operands.
template <Type type, ReduceOp operation>
void CombineFloat8(const void* source, void* destination, std::size_t count, void* /*context*/) {
  const auto* from = static_cast<const unsigned char*>(source);
  auto* to = static_cast<unsigned char*>(destination);
  for (std::size_t i = 0; i < count; ++i) {
    const float left = FromFloat8(type, to[i]);
    const float right = FromFloat8(type, from[i]);
    if constexpr (operation == ReduceOp::kMax) {
      if (left < right) to[i] = from[i];
    } else if constexpr (operation == ReduceOp::kMin) {
      if (right < left) to[i] = from[i];
    } else {
      to[i] = ToFloat8(type, operation == ReduceOp::kProduct ? left * right : left + right);
    }
  }
}

template <Type type>
Reduction Float8Reduction(ReduceOp operation) {
  constexpr Reduction::Function kFunctions[kNumReduceOps] = {
      CombineFloat8<type, ReduceOp::kSum>, CombineFloat8<type, ReduceOp::kProduct>,
      CombineFloat8<type, ReduceOp::kMax>, CombineFloat8<type, ReduceOp::kMin>,
      CombineFloat8<type, ReduceOp::kSum>};
  return Reduction::Custom(kFunctions[static_cast<int>(operation)], nullptr, 1);
}

// The engine's types and operations, by the codes of Type and ReduceOp. The engine has no 8-bit floats, and
// an average begins as a sum.
constexpr DataType kEngineTypes[] = {
    DataType::kChar,      DataType::kUChar,   DataType::kInt,   DataType::kUInt,   DataType::kLongLong,
    DataType::kULongLong, DataType::kFloat16, DataType::kFloat, DataType::kDouble, DataType::kBFloat16};
constexpr warren::ReduceOp kEngineOperations[kNumReduceOps] = {
    warren::ReduceOp::kSum, warren::ReduceOp::kProduct, warren::ReduceOp::kMax, warren::ReduceOp::kMin,
    warren::ReduceOp::kSum};

template <typename T>
void DivideAll(void* buffer, std::size_t count, int ranks) {
  auto* values = static_cast<T*>(buffer);
  // T may be too narrow for the number of ranks.
  using Divisor = std::conditional_t<std::is_floating_point_v<T>, T,
                                     std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(static_cast<Divisor>(values[i]) / static_cast<Divisor>(ranks));
  }
}

/// Divides 16-bit floats in float, and rounds the quotients.
void DivideShorts(Type type, void* buffer, std::size_t count, int ranks) {
  const Reduction sum = HostReduction(type, ReduceOp::kSum);
  std::vector<float> floats(count);
  sum.Widen(floats.data(), buffer, count);
  DivideAll<float>(floats.data(), count, ranks);
  sum.Narrow(buffer, floats.data(), count);
}

}  // namespace

float FromFloat8(Type type, unsigned char bits) {
  const Float8Format& format = FormatOf(type);
  const unsigned magnitude = bits & 0x7fU;
  const float sign = (bits & 0x80U) != 0 ? -1.0F : 1.0F;
  if (type == Type::kFloat8E4M3 ? magnitude == format.nan : magnitude > 0x7c) {
    return std::copysign(std::nanf(""), sign);
  }
  if (type == Type::kFloat8E5M2 && magnitude == 0x7c) return sign * HUGE_VALF;
  const int exponent = static_cast<int>(magnitude >> format.fraction_bits);
  const unsigned fraction = magnitude & ((1U << format.fraction_bits) - 1);
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(fraction), 1 - format.bias - format.fraction_bits);
  return sign * std::ldexp(static_cast<float>(fraction | 1U << format.fraction_bits),
                           exponent - format.bias - format.fraction_bits);
}

unsigned char ToFloat8(Type type, float value) {
  const Float8Format& format = FormatOf(type);
  const unsigned sign = std::signbit(value) ? 0x80U : 0;
  if (std::isnan(value)) return static_cast<unsigned char>(sign | format.nan);
  const float size = std::fabs(value);
  if (size == 0) return static_cast<unsigned char>(sign);
  const float greatest = FromFloat8(type, static_cast<unsigned char>(format.greatest));
  if (size >= greatest) return static_cast<unsigned char>(sign | format.greatest);
  int exponent = 0;
  std::frexp(size, &exponent);  // size is below 2^exponent
  const int lowest = 1 - format.bias;
  const int unit = std::max(exponent - 1, lowest) - format.fraction_bits;
  // The size in units in the last place, rounded to an integer; rounding may carry into the next power of
  // two.
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, -unit)));
  const unsigned below = static_cast<unsigned>(std::max(exponent - 1, lowest) - lowest)
                         << format.fraction_bits;
  return static_cast<unsigned char>(sign | (below + units));
}

Reduction HostReduction(Type type, ReduceOp operation) {
  if (type == Type::kFloat8E4M3) return Float8Reduction<Type::kFloat8E4M3>(operation);
  if (type == Type::kFloat8E5M2) return Float8Reduction<Type::kFloat8E5M2>(operation);
  return Reduction::Typed(kEngineTypes[static_cast<int>(type)],
                          kEngineOperations[static_cast<int>(operation)]);
}

void Divide(Type type, void* buffer, std::size_t count, int ranks) {
  switch (type) {
    case Type::kInt8:
      return DivideAll<std::int8_t>(buffer, count, ranks);
    case Type::kUint8:
      return DivideAll<std::uint8_t>(buffer, count, ranks);
    case Type::kInt32:
      return DivideAll<std::int32_t>(buffer, count, ranks);
    case Type::kUint32:
      return DivideAll<std::uint32_t>(buffer, count, ranks);
    case Type::kInt64:
      return DivideAll<std::int64_t>(buffer, count, ranks);
    case Type::kUint64:
      return DivideAll<std::uint64_t>(buffer, count, ranks);
    case Type::kFloat32:
      return DivideAll<float>(buffer, count, ranks);
    case Type::kFloat64:
      return DivideAll<double>(buffer, count, ranks);
    case Type::kFloat16:
    case Type::kBFloat16:
      return DivideShorts(type, buffer, count, ranks);
    case Type::kFloat8E4M3:
    case Type::kFloat8E5M2: {
      auto* values = static_cast<unsigned char*>(buffer);
      for (std::size_t i = 0; i < count; ++i)
        values[i] = ToFloat8(type, FromFloat8(type, values[i]) / static_cast<float>(ranks));
      return;
    }
  }
}

}  // namespace warren::device
