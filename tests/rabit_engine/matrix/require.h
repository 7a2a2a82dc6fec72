// Assertions that are checked in every build type, for programs that report with their exit code.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace warren::testing {

inline void Require(bool holds, const char* what, int line) {
  if (holds) return;
  std::fprintf(stderr, "%s is not as expected (line %d)\n", what, line);
  std::exit(1);
}

/// Whether `text` contains `part`. If not, prints both.
inline bool Has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  std::fprintf(stderr, "'%s' has no '%s'\n", text.c_str(), part.c_str());
  return false;
}

/// Calls the function. Returns the message of the exception that it throws; empty if it throws none.
template <typename Function>
std::string ErrorOf(Function&& function) {
  try {
    function();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace warren::testing

#define REQUIRE(condition) ::warren::testing::Require(condition, #condition, __LINE__)
