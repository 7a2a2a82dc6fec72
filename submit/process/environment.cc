#include "submit/process/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

extern char** environ;  // NOLINT: not in every system's headers

namespace warren::submit {

std::vector<std::string> InheritedNames() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::vector<std::string> InheritedWith(const tracker::Environment& added,
                                       const std::vector<std::string>& unset) {
  const auto is_replaced = [&](std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    return std::any_of(added.begin(), added.end(), [&](const auto& entry) { return entry.first == name; }) ||
           std::find(unset.begin(), unset.end(), name) != unset.end();
  };
  std::vector<std::string> whole;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_replaced(*variable)) whole.emplace_back(*variable);
  }
  for (const auto& [name, value] : added) whole.push_back(fmt::format("{}={}", name, value));
  return whole;
}

tracker::Environment PassedOn() {
  constexpr std::array<const char*, 8> kNames = {
      "OMP_NUM_THREADS", "KMP_AFFINITY",      "LD_LIBRARY_PATH",       "PYTHONPATH",
      "DMLC_INTERFACE",  "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
  tracker::Environment passed;
  for (const char* name : kNames) {
    if (const char* value = std::getenv(name)) passed.emplace_back(name, value);
  }
  return passed;
}

}  // namespace warren::submit
