// A hash with which ranks compare lists of numbers: FNV-1a (Fowler, Noll and Vo), applied to 64-bit numbers
// instead of bytes. The result is the same on all hosts.
#pragma once

#include <cstdint>

namespace warren {

template <typename Numbers>
constexpr std::uint64_t Fnv1a(const Numbers& numbers) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const auto number : numbers) digest = (digest ^ static_cast<std::uint64_t>(number)) * 0x100000001b3;
  return digest;
}

}  // namespace warren
