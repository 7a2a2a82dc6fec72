// Completion in zsh, as a file in $fpath or loaded by `source <(...)`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "submit/options/completion/completion.h"

namespace warren::submit {
namespace {

/// Escapes text for use in single quotes, and the special characters of _arguments in it.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string Action(const Option& option) {
  const ValueHint hint = HintFor(option);
  switch (hint.kind) {
    case ValueKind::kChoice:
      return fmt::format("({})", fmt::join(hint.choices, " "));
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kDirectory:
      return "_directories";
    case ValueKind::kProgram:
      return "_command_names -e";
    case ValueKind::kFlag:
    case ValueKind::kInteger:
    case ValueKind::kNumber:
    case ValueKind::kAny:
      break;
  }
  return " ";
}

/// The option's specifications for _arguments, one line per name. Unless the option is repeatable, none of
/// its names is offered once one of them is used.
std::string Specifications(const Option& option) {
  std::string lines;
  const std::string names = fmt::format("{}", fmt::join(NamesOf(option), " "));
  const bool flag = HintFor(option).kind == ValueKind::kFlag;
  for (const std::string_view name : NamesOf(option)) {
    const std::string before = option.repeatable ? "*" : fmt::format("({})", names);
    const std::string_view joined = flag ? "" : name.starts_with("--") ? "=" : "+";
    const std::string value = flag ? "" : fmt::format(":{}:{}", Escaped(option.value), Action(option));
    lines += fmt::format("    '{}{}{}[{}]{}' \\\n", before, name, joined, Escaped(ShortHelp(option)), value);
  }
  return lines;
}

}  // namespace

std::string ZshCompletion(const OptionTable& table) {
  std::string specifications;
  for (const Option& option : table.rows()) specifications += Specifications(option);
  return fmt::format(
      "#compdef dmlc-submit\n"
      "# Completion of dmlc-submit in zsh, written by dmlc-submit --completion zsh.\n\n"
      "_dmlc_submit() {{\n"
      "  _arguments -S -A '-*' \\\n"
      "{}    '(-)1:command:{{ _command_names -e; _files }}' \\\n"
      "    '*::arguments:_normal'\n"
      "}}\n\n"
      "if [[ $funcstack[1] == _dmlc-submit ]]; then\n"
      "  _dmlc_submit \"$@\"\n"
      "else\n"
      "  compdef _dmlc_submit dmlc-submit\n"
      "fi\n",
      specifications);
}

}  // namespace warren::submit
