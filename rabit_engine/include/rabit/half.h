// 16-bit floating point for rabit::Allreduce, in C++11 and later: rabit::Float16, IEEE 754 binary16, and
// rabit::BFloat16, the upper half of a float.
//
//     std::vector<rabit::Float16> gradient(n);
//     gradient[0] = rabit::Float16(0.1f);                              // rounded to nearest even
//     rabit::Allreduce<rabit::op::Sum>(gradient.data(), gradient.size());
//     float first = gradient[0];                                       // exact
//
// These types are for storage: compute in float. Sums over ranks are computed in float, too, and rounded once
// (rabit.h). The compilers' own types, _Float16, __fp16, __bf16, std::float16_t and std::bfloat16_t, can be
// reduced directly.
#ifndef RABIT_HALF_H_
#define RABIT_HALF_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rabit/base.h"

namespace rabit {
namespace engine {
namespace half {
inline namespace warren_v1 {

inline std::uint32_t BitsOf(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float FloatOf(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
/// Returns value / 2^places, rounded to nearest, ties to even; places is 1 to 31.
inline std::uint32_t Shifted(std::uint32_t value, std::uint32_t places) {
  return (value + ((std::uint32_t(1) << (places - 1)) - 1) + (value >> places & 1U)) >> places;
}

/// Rounds to nearest, ties to even. NaN becomes a quiet NaN with the upper bits of the payload; values that
/// are too large become infinity.
inline std::uint16_t ToFloat16(float value) {
  const std::uint32_t bits = BitsOf(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t exponent = magnitude >> 23;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | (magnitude >> 13 & 0x3ffU);
  } else if (exponent >= 127 + 16) {
    half = 0x7c00U;
  } else if (exponent >= 127 - 14) {
    half = Shifted(magnitude - (std::uint32_t(127 - 15) << 23), 13);  // a carry goes into the exponent
  } else if (exponent >= 127 - 25) {
    half = Shifted((magnitude & 0x7fffffU) | 0x800000U, 126 - exponent);  // in units of 2^-24
  }
  return static_cast<std::uint16_t>(sign | half);
}
inline float FromFloat16(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t(half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7fffU;
  if (magnitude < 0x400U) {
    const float units = static_cast<float>(magnitude) / 16777216.0f;
    return sign != 0 ? -units : units;
  }
  if (magnitude < 0x7c00U) return FloatOf(sign | ((magnitude << 13) + (std::uint32_t(127 - 15) << 23)));
  return FloatOf(sign | 0x7f800000U | magnitude << 13 | (magnitude > 0x7c00U ? 0x400000U : 0U));
}

/// Rounds, and treats NaN and values that are too large, like ToFloat16.
inline std::uint16_t ToBFloat16(float value) {
  const std::uint32_t bits = BitsOf(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return static_cast<std::uint16_t>(is_nan ? bits >> 16 | 0x40U : Shifted(bits, 16));
}
inline float FromBFloat16(std::uint16_t half) {
  return FloatOf(std::uint32_t(half) << 16);
}

}  // namespace warren_v1
}  // namespace half
}  // namespace engine

inline namespace warren_v1 {

/// Uninitialized by default, like a float. Conversions: engine::half::ToFloat16 and FromFloat16.
class Float16 {
 public:
  Float16() = default;
  explicit Float16(float value) : bits_(engine::half::ToFloat16(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is exact
  operator float() const { return engine::half::FromFloat16(bits_); }

  static Float16 FromBits(std::uint16_t bits) {
    Float16 value;
    value.bits_ = bits;
    return value;
  }
  std::uint16_t bits() const { return bits_; }

 private:
  std::uint16_t bits_;
};

/// Uninitialized by default. Conversions: engine::half::ToBFloat16 and FromBFloat16.
class BFloat16 {
 public:
  BFloat16() = default;
  explicit BFloat16(float value) : bits_(engine::half::ToBFloat16(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is exact
  operator float() const { return engine::half::FromBFloat16(bits_); }

  static BFloat16 FromBits(std::uint16_t bits) {
    BFloat16 value;
    value.bits_ = bits;
    return value;
  }
  std::uint16_t bits() const { return bits_; }

 private:
  std::uint16_t bits_;
};

}  // namespace warren_v1

namespace engine {
namespace half {
inline namespace warren_v1 {

/// Whether T is a compiler's own 16-bit float: two bytes, convertible from and to float, and neither a class,
/// a union, an integer nor an enumeration.
template <typename T>
struct IsCompilers
    : std::integral_constant<bool, sizeof(T) == 2 && !std::is_class<T>::value && !std::is_union<T>::value &&
                                       !std::is_integral<T>::value && !std::is_enum<T>::value &&
                                       std::is_constructible<T, float>::value &&
                                       std::is_constructible<float, T>::value> {};

/// Whether T can hold 1 + 2^-10, as binary16 can and bfloat16 cannot.
template <typename T, bool is_compilers>
struct HasTenBits : std::false_type {};
template <typename T>
struct HasTenBits<T, true>
    : std::integral_constant<bool, static_cast<float>(static_cast<T>(1.0009765625f)) != 1.0f> {};

template <typename T>
struct IsFloat16 : HasTenBits<T, IsCompilers<T>::value> {};
template <>
struct IsFloat16<Float16> : std::true_type {};

template <typename T>
struct IsBFloat16 : std::integral_constant<bool, IsCompilers<T>::value && !IsFloat16<T>::value> {};
template <>
struct IsBFloat16<BFloat16> : std::true_type {};

}  // namespace warren_v1
}  // namespace half
}  // namespace engine
}  // namespace rabit
#endif  // RABIT_HALF_H_
