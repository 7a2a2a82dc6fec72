// Reads numbers from texts that other ranks have sent, or throws the error that they are malformed.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "rabit_engine/base/error.h"

namespace warren {

/// Throws EngineError: what a rank has told as its `what` is not what this version of the engine tells.
[[noreturn]] inline void ThrowOtherVersion(std::string_view what) {
  throw EngineError(
      fmt::format("a rank's {} is not what this engine writes: do all ranks run the same version?", what));
}

/// The decimal number from `low` to `high` that is all of `text`, which another rank has told as its `what`.
/// Throws EngineError if it is anything else.
template <typename T>
T ToldNumber(std::string_view text, std::string_view what, T low, T high) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && stop == end && value >= low && value <= high) return value;
  ThrowOtherVersion(what);
}

}  // namespace warren
