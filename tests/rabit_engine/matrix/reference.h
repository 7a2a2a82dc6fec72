// A simple reference for the result of a reduction, bit for bit: a second implementation of the engine's
// reduction order, element by element, with none of the engine's code. Operations on elements, and the types
// of 16-bit floats, are those of tests/rabit_engine/reduce.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tests/rabit_engine/reduce/reference.h"

namespace warren::matrix {

/// An affine map x -> a x + b over the integers modulo 2^32, under composition: a reduction that is not
/// commutative, with elements of 24 bytes.
struct AffineMap {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  std::uint32_t unused[4] = {};
  friend bool operator==(const AffineMap& x, const AffineMap& y) { return x.a == y.a && x.b == y.b; }
};
inline AffineMap Compose(const AffineMap& low, const AffineMap& high) {
  return {high.a * low.a, high.a * low.b + high.b, {}};
}

template <typename T>
constexpr bool kIsSixteenBits = std::is_same_v<T, reference::Half> || std::is_same_v<T, reference::Brain>;

/// The value of element `index` on `rank`, which every rank can compute.
template <typename T>
T Value(int rank, std::size_t index, std::uint64_t seed) {
  std::uint64_t x =
      seed * 0x9e3779b97f4a7c15 + index * 0xbf58476d1ce4e5b9 + static_cast<std::uint64_t>(rank) + 1;
  x ^= x >> 31;
  x *= 0x94d049bb133111eb;
  x ^= x >> 29;
  if constexpr (std::is_same_v<T, AffineMap>) {
    return {static_cast<std::uint32_t>(x) | 1, static_cast<std::uint32_t>(x >> 32), {}};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else if constexpr (kIsSixteenBits<T>) {
    // Some numbers near 1, and more that are about as large as one unit in the last place of 1, so that
    // intermediate rounding changes the result.
    constexpr int kFractionBits = std::bit_width(T::kQuietBit);
    const std::uint64_t exponent = T::kBias - ((x >> 20) % 3 == 0 ? 0 : kFractionBits + (x >> 30) % 2);
    const std::uint64_t fraction = (x >> 40) % (1u << kFractionBits);
    return {static_cast<std::uint16_t>((x % 4 == 0 ? 0x8000u : 0u) | exponent << kFractionBits | fraction)};
  } else {
    // Magnitudes are far apart, so that other orders of addition round differently.
    const double scale[] = {1e-3, 1.0, 1e4, 1e7};
    return static_cast<T>((static_cast<double>(x % 2001) - 1000.0) / 7.0 * scale[(x >> 20) % 4]);
  }
}

/// The combined values of those ranks in [begin, begin + span) that exist, in the order of
/// rabit_engine/reduce/order.h.
template <typename T, typename Combine>
T Expected(int begin, int span, int world_size, const T* values, Combine combine) {
  if (span == 1) return values[begin];
  const int middle = begin + span / 2;
  const T low = Expected(begin, span / 2, world_size, values, combine);
  return middle >= world_size ? low : combine(low, Expected(middle, span / 2, world_size, values, combine));
}

template <typename T, typename Combine>
T Expected(int world_size, const T* values, Combine combine) {
  int span = 1;
  while (span < world_size) span *= 2;
  return Expected(0, span, world_size, values, combine);
}

/// The combination of all ranks' values of one element.
template <typename T, typename Combine>
T Expected(int world_size, std::size_t index, std::uint64_t seed, Combine combine) {
  if constexpr (kIsSixteenBits<T>) {
    // The values are combined as floats, and the result is rounded once.
    std::array<float, 64> floats{};
    for (int rank = 0; rank < world_size; ++rank)
      floats[static_cast<std::size_t>(rank)] = reference::Widened(Value<T>(rank, index, seed));
    return reference::Narrowed<T>(Expected(world_size, floats.data(), combine));
  } else {
    std::array<T, 64> values{};
    for (int rank = 0; rank < world_size; ++rank)
      values[static_cast<std::size_t>(rank)] = Value<T>(rank, index, seed);
    return Expected(world_size, values.data(), combine);
  }
}

}  // namespace warren::matrix
