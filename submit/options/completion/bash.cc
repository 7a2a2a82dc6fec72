// Completion in bash, with and without the bash-completion package.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "submit/options/completion/completion.h"

namespace warren::submit {
namespace {

/// Walks over the words up to the cursor, as dmlc-submit would. Bash may have split --name=value into three
/// words, because = is a word break. The argument of _dmlc_submit_from is the index of the first word after
/// dmlc-submit: completion for `warren submit` calls this function, too, with another index.
constexpr std::string_view kBashWalk = R"bash(
# Moves i past the rest of a value that Bash has split at = or :.
_dmlc_submit_skip_rest() {
  while ((i <= COMP_CWORD)) && [[ ${COMP_WORDS[i]} == [=:]* ]]; do
    ((i += 1))
    [[ ${COMP_WORDS[i]} == -* ]] || ((i += 1))  # --env KEY= --option
  done
}

_dmlc_submit_from() {
  local cur=${COMP_WORDS[COMP_CWORD]} i=$1 value_of='' prefix=''
  COMPREPLY=()
  while ((i < COMP_CWORD)); do
    case ${COMP_WORDS[i]} in
      --) _dmlc_submit_command $((i + 1)); return ;;
      -*=*) ((i += 1)); continue ;;
      @NAMES_LIKE_JOINED@) ;;
      @JOINED@) ((i += 1)); continue ;;
      -?*) ;;
      *) _dmlc_submit_command "$i"; return ;;
    esac
    if _dmlc_submit_is_flag "${COMP_WORDS[i]}"; then
      ((i += 1))
    elif [[ ${COMP_WORDS[i + 1]} == = ]]; then
      if ((i + 2 >= COMP_CWORD)); then
        value_of=${COMP_WORDS[i]}
        [[ $cur != = ]] || cur=''
        break
      fi
      ((i += 3))
      _dmlc_submit_skip_rest
    elif ((i + 1 == COMP_CWORD)); then
      value_of=${COMP_WORDS[i]}
      break
    else
      ((i += 2))
      _dmlc_submit_skip_rest
    fi
  done
  ((i <= COMP_CWORD)) || return  # within a value such as KEY=VALUE
  if [[ -z $value_of && $cur == -*=* ]]; then
    value_of=${cur%%=*} prefix=${cur%%=*}= cur=${cur#*=}
  fi
  if [[ -n $value_of ]]; then
    _dmlc_submit_value "$value_of" "$cur"
    COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
  elif [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$_dmlc_submit_options" -- "$cur")
  else
    _dmlc_submit_command "$COMP_CWORD"
  fi
}

_dmlc_submit_command() {
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "$1"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  else
    local cur=${COMP_WORDS[COMP_CWORD]}
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <({ (($1 < COMP_CWORD)) || compgen -c -- "$cur"; compgen -f -- "$cur"; } | sort -u)
  fi
}

_dmlc_submit() {
  _dmlc_submit_from 1
}

complete -F _dmlc_submit dmlc-submit
)bash";

/// The option's names as a pattern of `case`: "--a|--b"
std::string Pattern(const Option& option) {
  return fmt::format("{}", fmt::join(NamesOf(option), "|"));
}

std::string ValueCase(const Option& option) {
  constexpr std::string_view kReply = "mapfile -t COMPREPLY < <(compgen";
  const ValueHint hint = HintFor(option);
  switch (hint.kind) {
    case ValueKind::kChoice:
      return fmt::format("    {}) {} -W '{}' -- \"$2\") ;;\n", Pattern(option), kReply,
                         fmt::join(hint.choices, " "));
    case ValueKind::kFile:
      return fmt::format("    {}) compopt -o filenames 2>/dev/null; {} -f -- \"$2\") ;;\n", Pattern(option),
                         kReply);
    case ValueKind::kDirectory:
      return fmt::format("    {}) compopt -o filenames 2>/dev/null; {} -d -- \"$2\") ;;\n", Pattern(option),
                         kReply);
    case ValueKind::kProgram:
      return fmt::format("    {}) {} -c -- \"$2\") ;;\n", Pattern(option), kReply);
    case ValueKind::kFlag:
    case ValueKind::kInteger:
    case ValueKind::kNumber:
    case ValueKind::kAny:
      break;
  }
  return {};
}

}  // namespace

std::string BashCompletion(const OptionTable& table) {
  std::string names;
  std::string flags;
  std::string cases;
  for (const Option& option : table.rows()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", fmt::join(NamesOf(option), " "));
    if (HintFor(option).kind == ValueKind::kFlag) {
      flags += fmt::format("{}{}", flags.empty() ? "" : "|", Pattern(option));
    }
    cases += ValueCase(option);
  }
  return fmt::format(
      "# Completion of dmlc-submit in bash, written by dmlc-submit --completion bash.\n"
      "_dmlc_submit_options='{}'\n\n"
      "_dmlc_submit_is_flag() {{\n  case $1 in\n    {}) return 0 ;;\n  esac\n  return 1\n}}\n\n"
      "_dmlc_submit_value() {{\n  case $1 in\n{}  esac\n}}\n{}",
      names, flags, cases, WithJoinedValues(table, kBashWalk, "|", ""));
}

}  // namespace warren::submit
