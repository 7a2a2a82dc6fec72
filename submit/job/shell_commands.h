// Lists the simple commands that a shell script runs, without expanding anything. This suffices to guess
// which programs a script runs: the commands of loops, conditions and functions are listed once, in the order
// of the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warren::submit {

/// A simple shell command, or the beginning or end of a subshell.
struct SimpleCommand {
  enum class Kind { kCommand, kOpens, kCloses };  ///< kOpens and kCloses delimit a subshell
  Kind kind = Kind::kCommand;
  std::vector<std::string> words;  ///< unquoted; $ is kept, targets of redirections are omitted
  std::optional<std::string> here_document = {};  ///< the text of <<END or <<<
  std::string input_file = {};                    ///< the file after <; empty: none
};

/// Returns the commands in the order of the text. Commands in $(...) and `...` come before the command that
/// contains them, between kOpens and kCloses. Does not throw if the text is not a shell script.
std::vector<SimpleCommand> CommandsOfShell(std::string_view script);

}  // namespace warren::submit
