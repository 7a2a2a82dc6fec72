// What a shell script runs: its simple commands, without expansions. For guesses about programs, not for
// running them: loops and functions are no structure here, their commands follow one another.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warren::submit {

/// A simple command of a shell, or a parenthesis around some.
struct SimpleCommand {
  enum class Kind { kCommand, kOpens, kCloses };  ///< a subshell opens, and closes
  Kind kind = Kind::kCommand;
  std::vector<std::string> words;  ///< without quotes; $ stays, and what redirections name is not among them
  std::optional<std::string> here_document = {};  ///< what <<END and <<< give it to read
  std::string input_file = {};                    ///< what < names; empty: none
};

/// In the order of the text; those in $(...) and `...` come before the command around them, as a subshell.
/// Never throws for text that is no shell script.
std::vector<SimpleCommand> CommandsOfShell(std::string_view script);

}  // namespace warren::submit
