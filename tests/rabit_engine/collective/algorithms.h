// All algorithms under test, by collective: the registry's algorithms that need only links.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "rabit_engine/collective/registry.h"

namespace warren::testing {

template <typename Function>
struct Named {
  std::string name;
  Function function;
  friend std::ostream& operator<<(std::ostream& out, const Named& named) { return out << named.name; }
};

template <typename Function>
struct NameOf {
  std::string operator()(const ::testing::TestParamInfo<Named<Function>>& info) const {
    return info.param.name;
  }
};

/// Turns "recursive_doubling" into "RecursiveDoubling", as test names must not contain underscores.
inline std::string CamelCase(std::string_view name) {
  std::string camel;
  bool begins = true;
  for (const char c : name) {
    if (c != '_') camel += begins ? static_cast<char>(std::toupper(c)) : c;
    begins = c == '_';
  }
  return camel;
}

/// The registry's algorithms for one collective that need only links.
template <typename Function>
std::vector<Named<Function>> OverLinks(Function collective::Algorithm::*function) {
  std::vector<Named<Function>> found;
  for (const collective::Algorithm* algorithm : collective::Algorithms()) {
    if (algorithm->*function != nullptr && algorithm->needs == collective::kNothing) {
      found.push_back({CamelCase(algorithm->name), algorithm->*function});
    }
  }
  return found;
}

inline auto Allreduces() {
  return OverLinks(&collective::Algorithm::allreduce);
}
inline auto Reduces() {
  return OverLinks(&collective::Algorithm::reduce);
}
inline auto ReduceScatters() {
  return OverLinks(&collective::Algorithm::reduce_scatter);
}
inline auto Allgathers() {
  return OverLinks(&collective::Algorithm::allgather);
}
inline auto Broadcasts() {
  return OverLinks(&collective::Algorithm::broadcast);
}
inline auto Barriers() {
  return OverLinks(&collective::Algorithm::barrier);
}

}  // namespace warren::testing
