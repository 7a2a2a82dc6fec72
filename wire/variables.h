// The environment variables that users can set. The same table serves to look them up under their current and
// former names, and to write the reference page (`dmlc-submit --help-environment`).
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
  const char* former;  ///< the former name, which is still read; null if there was none
  std::string_view values;
  std::string_view default_value;
  std::string_view meaning;  ///< in Markdown
  std::string_view reader;   ///< the programs and libraries that read it
};
std::span<const Variable> Variables();
/// Returns the entry with this name, or null if the table has none.
const Variable* VariableOf(std::string_view name);

/// A function that returns the value of an environment variable if it is set and not empty, such as
/// FromEnvironment.
using LookUp = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> FromEnvironment(const char* name);

struct SetVariable {
  const char* name;  ///< the name under which the value was found, for error messages
  std::string value;
};
/// Returns the value set under this name or else under its former name; nullopt if neither is set.
std::optional<SetVariable> FindVariable(const char* name, const LookUp& look_up);

/// Returns a message for each variable that is set to different values under both of its names; the new name
/// takes precedence.
std::vector<std::string> ContradictingNames(const LookUp& look_up);

/// Returns the table as a page in Markdown.
std::string VariablesMarkdown();

}  // namespace warren::wire
