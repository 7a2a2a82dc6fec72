// Completion in fish.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "submit/options/completion/completion.h"

namespace warren::submit {
namespace {

/// Prints the index of the job's command among the words up to the cursor, where dmlc-submit has index 1.
/// Prints nothing while options are being typed.
constexpr std::string_view kFishWalk = R"fish(
function __dmlc_submit_command_at
    set -l words (commandline -opc)
    set -l i 2
    while test $i -le (count $words)
        switch $words[$i]
            case --
                echo (math $i + 1)
                return 0
            case '-*=*' $__dmlc_submit_flags
                set i (math $i + 1)
            case @NAMES_LIKE_JOINED@
                set i (math $i + 2)
            case @JOINED@
                set i (math $i + 1)
            case '-?*'
                set i (math $i + 2)
            case '*'
                echo $i
                return 0
        end
    end
    # The word under the cursor: a value, an option, or the beginning of the command.
    test $i -eq (math (count $words) + 1); and not string match -q -- '-*' (commandline -ct); and echo $i
    return 0
end

function __dmlc_submit_in_options
    set -l at (__dmlc_submit_command_at)
    test -z "$at"; or test $at -gt (count (commandline -opc)); and not contains -- -- (commandline -opc)
end

function __dmlc_submit_command
    set -l at (__dmlc_submit_command_at)
    test -n "$at"; or return
    set -l words (commandline -opc)
    set -l before
    test $at -le (count $words); and set before (string escape -- $words[$at..-1])
    complete -C (string join ' ' -- $before (commandline -ct))
end

complete -c dmlc-submit -e
complete -c dmlc-submit -f -k -a '(__dmlc_submit_command)'
)fish";

/// The text in single quotes, as fish reads it.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

std::string ValueWords(const Option& option) {
  const ValueHint hint = HintFor(option);
  switch (hint.kind) {
    case ValueKind::kFlag:
      return "";
    case ValueKind::kChoice:
      return fmt::format(" -x -a {}", Quoted(fmt::format("{}", fmt::join(hint.choices, " "))));
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kDirectory:
      return " -x -a '(__fish_complete_directories (commandline -ct))'";
    case ValueKind::kProgram:
      return " -x -a '(__fish_complete_command)'";
    case ValueKind::kInteger:
    case ValueKind::kNumber:
    case ValueKind::kAny:
      break;
  }
  return " -x";
}

std::string NameWords(const Option& option) {
  std::string words;
  for (const std::string_view name : NamesOf(option)) {
    const bool is_letter = name.size() == 2;
    words += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                    : fmt::format(" -{} {}", is_letter ? 's' : 'o', name.substr(1));
  }
  return words;
}

}  // namespace

std::string FishCompletion(const OptionTable& table) {
  std::string flags;
  std::string lines;
  for (const Option& option : table.rows()) {
    if (HintFor(option).kind == ValueKind::kFlag)
      flags += fmt::format(" {}", fmt::join(NamesOf(option), " "));
    lines += fmt::format("complete -c dmlc-submit -n __dmlc_submit_in_options{}{} -d {}\n", NameWords(option),
                         ValueWords(option), Quoted(ShortHelp(option)));
  }
  return fmt::format(
      "# Completion of dmlc-submit in fish, written by dmlc-submit --completion fish.\n"
      "set -g __dmlc_submit_flags{}\n{}{}",
      flags, WithJoinedValues(table, kFishWalk, " ", "'"), lines);
}

}  // namespace warren::submit
