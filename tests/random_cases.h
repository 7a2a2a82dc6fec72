#pragma once

#include <cstdlib>
#include <string_view>

namespace warren {

/// The number of random cases in a test: `all` if WARREN_NIGHTLY=1 (scripts/nightly), otherwise a quarter of
/// `all`.
inline unsigned RandomCases(unsigned all) {
  const char* const nightly = std::getenv("WARREN_NIGHTLY");
  return nightly != nullptr && std::string_view(nightly) == "1" ? all : all / 4;
}

}  // namespace warren
