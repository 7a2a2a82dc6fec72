// The environment variables by which users set something: one table, from which they are looked up under the
// names that they have and had, and of which `dmlc-submit --help-environment` makes the reference page.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warren::wire {

struct Variable {
  std::string_view group;
  const char* name;
  const char* former;  ///< the name it had before, which is still read; null: none
  std::string_view values;
  std::string_view default_value;
  std::string_view meaning;  ///< in Markdown
  std::string_view reader;   ///< who reads it
};
std::span<const Variable> Variables();
/// Null where the table has none of that name.
const Variable* VariableOf(std::string_view name);

/// The value of an environment variable, if it is set and not empty.
using LookUp = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> FromEnvironment(const char* name);

struct SetVariable {
  const char* name;  ///< the one under which it was found: what to call it in an error
  std::string value;
};
/// What is set under this name, or else under the one it had before.
std::optional<SetVariable> FindVariable(const char* name, const LookUp& look_up);

/// A line for each variable that is set under both of its names, to different values: the new name counts.
std::vector<std::string> ContradictingNames(const LookUp& look_up);

/// The table as a page in Markdown.
std::string VariablesMarkdown();

}  // namespace warren::wire
