// Parses numbers sent by other ranks.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/parse_number.h"

namespace warren {

/// Throws EngineError: another rank sent a `what` that this version of the engine never sends.
[[noreturn]] inline void ThrowOtherVersion(std::string_view what) {
  throw EngineError(fmt::format("a rank sent an invalid {}: do all ranks run the same version?", what));
}

/// Parses `text`, which another rank sent as its `what`, as a decimal number from `low` to `high`. Throws
/// EngineError if it is anything else.
template <typename T>
T ToldNumber(std::string_view text, std::string_view what, T low, T high) {
  if (const auto value = ParseNumber(text, low, high)) return *value;
  ThrowOtherVersion(what);
}

}  // namespace warren
