// Numbers in the byte order of the file formats, least significant byte first. Internal to data/.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace warren::data::internal {

/// Returns the number in the sizeof(T) bytes at `at`.
template <typename T>
T LoadLittleEndian(const char* at) {
  static_assert(std::is_unsigned_v<T>);
  T value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, at, sizeof(T));
  } else {
    for (std::size_t i = sizeof(T); i-- > 0;)
      value = static_cast<T>(value << 8 | static_cast<unsigned char>(at[i]));
  }
  return value;
}

}  // namespace warren::data::internal
