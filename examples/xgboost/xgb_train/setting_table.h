// A table of the settings that a program accepts: one row parses a setting, stores it, and explains it in the
// help.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "examples/xgboost/xgb_train/config.h"

namespace warren::xgb_train {

/// A row of the table. `Target` is the program's struct of all settings.
template <typename Target>
struct Rule {
  std::string_view name;
  std::string_view alias;     ///< another name, or empty
  std::string_view fallback;  ///< the default, as shown in the help
  std::string_view help;
  void (*apply)(Target&, const Setting&);
};

/// Returns the row whose name or alias is `key`, or nullptr.
template <typename Target>
const Rule<Target>* FindRule(std::span<const Rule<Target>> rules, std::string_view key) {
  for (const Rule<Target>& rule : rules) {
    if (key == rule.name || (!rule.alias.empty() && key == rule.alias)) return &rule;
  }
  return nullptr;
}

/// Returns the help text of all rows and of eval[NAME].
template <typename Target>
std::string DescribeRules(std::span<const Rule<Target>> rules) {
  std::string text;
  for (const Rule<Target>& rule : rules) {
    const std::string also = rule.alias.empty() ? "" : fmt::format(" (or {})", rule.alias);
    const std::string fallback = rule.fallback.empty() ? "" : fmt::format(" [{}]", rule.fallback);
    text += fmt::format("  {}{}{}\n      {}\n", rule.name, also, fallback, rule.help);
  }
  return text +
         "  eval[NAME]\n      Data to evaluate after every round, shown as NAME; may be given several times.\n";
}

/// Throws ConfigError naming what was found and what was expected.
[[noreturn]] inline void Reject(const Setting& setting, std::string_view expected) {
  throw ConfigError(
      fmt::format("{}: found {} = {}; expected {}", setting.origin, setting.key, setting.value, expected));
}

/// Data to evaluate after every round.
struct EvalSet {
  std::string name;
  std::string path;
};

/// Parses `eval[NAME] = path`; nullopt if the key does not begin with `eval[`. Throws ConfigError if the rest
/// of the key is malformed.
inline std::optional<EvalSet> ParseEvalSet(const Setting& setting) {
  constexpr std::string_view kPrefix = "eval[";
  const std::string_view key = setting.key;
  if (!key.starts_with(kPrefix)) return std::nullopt;
  if (!key.ends_with(']') || key.size() <= kPrefix.size() + 1) Reject(setting, "eval[NAME] = path");
  return EvalSet{std::string(key.substr(kPrefix.size(), key.size() - kPrefix.size() - 1)), setting.value};
}

}  // namespace warren::xgb_train
