// REQUIRE: an assertion that is checked in every build type, for programs that report with their exit code.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace warren::testing {

inline void Require(bool holds, const char* what, int line) {
  if (holds) return;
  std::fprintf(stderr, "%s is not as expected (line %d)\n", what, line);
  std::exit(1);
}

}  // namespace warren::testing

#define REQUIRE(condition) ::warren::testing::Require(condition, #condition, __LINE__)
