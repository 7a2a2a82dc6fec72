// The two tracker dialects. Both begin with the same magic and differ in the worker's bytes after it: a
// classic worker sends two small int32 (rank and world size), a collective worker a length and then a JSON
// object.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace warren::wire {

/// The first four bytes that each side sends in both dialects (after the authentication, if any).
inline constexpr std::int32_t kMagic = 0xff99;

enum class Dialect {
  kClassic,     ///< rabit, dmlc-core and XGBoost up to 2.0
  kCollective,  ///< XGBoost 2.1 and later
};

/// Detects the dialect from the worker's bytes after the magic; `std::nullopt` while there are too few to
/// tell. The fifth byte from a collective worker is the `{` of its JSON. From a classic worker it is the low
/// byte of the world size, which can have the same value (123, 379, ...); but the high byte of a world size
/// below 2^24 is zero, and JSON text contains no zero byte.
inline std::optional<Dialect> DetectDialect(std::string_view after_magic) {
  if (after_magic.size() < 5) return std::nullopt;
  if (after_magic[4] != '{') return Dialect::kClassic;
  if (after_magic.size() < 8) return std::nullopt;
  const bool has_nul = after_magic.substr(4, 4).find('\0') != std::string_view::npos;
  return has_nul ? Dialect::kClassic : Dialect::kCollective;
}

}  // namespace warren::wire
