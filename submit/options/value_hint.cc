#include "submit/options/value_hint.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace warren::submit {
namespace {

/// Words that stand for other values if they appear among choices, which are separated by vertical bars.
constexpr std::array<std::string_view, 3> kPlaceholders = {"IP", "FILE", "URL"};

/// The hint for a placeholder such as "auto|always|never" or "FILE|URL".
ValueHint HintForChoices(std::string_view value) {
  ValueHint hint{ValueKind::kChoice};
  bool is_file = false;
  while (!value.empty()) {
    const std::size_t bar = std::min(value.find('|'), value.size());
    const std::string_view word = value.substr(0, bar);
    if (std::find(kPlaceholders.begin(), kPlaceholders.end(), word) == kPlaceholders.end()) {
      hint.choices.emplace_back(word);
    } else {
      hint.is_open = true;
      is_file = is_file || word == "FILE";
    }
    value.remove_prefix(std::min(bar + 1, value.size()));
  }
  if (hint.choices.empty()) return {is_file ? ValueKind::kFile : ValueKind::kAny};
  return hint;
}

}  // namespace

ValueHint HintFor(const Option& option) {
  if (option.value_is_optional)
    return {ValueKind::kFlag};  // on command lines, the next word is never its value
  if (option.value.empty()) return {ValueKind::kFlag};
  if (option.value == "FILE" || option.value == "SCRIPT") return {ValueKind::kFile};
  if (option.value == "DIR") return {ValueKind::kDirectory};
  if (option.value == "PROGRAM") return {ValueKind::kProgram};
  if (option.value == "SECONDS") return {ValueKind::kNumber};
  if (option.value.size() == 1) return {ValueKind::kInteger};  // "N", "M", "K", "P"
  if (!option.choices.empty()) return {ValueKind::kChoice, option.choices};
  if (option.value.find('|') != std::string_view::npos) return HintForChoices(option.value);
  return {};
}

bool TakesMap(const Option& option) {
  return option.repeatable && option.value == "KEY=VALUE";
}

}  // namespace warren::submit
