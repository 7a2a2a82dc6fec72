// The command of a job: finds the file that it names, derives the job's name from it, and quotes it so that a
// shell reads it back unchanged.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace warren::submit {

/// Exit codes for a command that cannot be run, as shells define them.
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

/// Thrown if the command cannot be run; dmlc-submit then exits with `exit_code`.
class CommandError : public std::runtime_error {
 public:
  CommandError(const std::string& message, int code, bool lacks_interpreter = false)
      : std::runtime_error(message), exit_code(code), is_bare_script(lacks_interpreter) {}
  int exit_code;
  bool is_bare_script;  ///< whether the command is a script such as train.py without its interpreter
};

struct FoundCommand {
  std::string argv0;  ///< the process's argv[0]: the name as written, or "./name"
  std::string file;   ///< the file to execute
  std::string note;   ///< a message about something that the user may not expect, or empty
  /// The directory of the Python environment (venv or conda) that the processes also use on other hosts, or
  /// empty.
  std::string python_environment = {};
};

/// The value of PATH, or a default if it is not set.
std::string SearchPath();

/// Finds the file for `name`. A name with a '/' is the path of the file. Any other name is searched for in
/// `path` (a value of PATH). If no executable file is found there, an executable file of that name in the
/// current directory is taken, as "./name". Throws CommandError if there is no such file or it cannot be run.
FoundCommand FindCommand(const std::string& name, const std::string& path);

enum class Language { kPython, kShell, kR };

/// The script, module or code that an interpreter runs.
struct Interpreted {
  enum class Kind { kScript, kModule, kCode, kInput };  ///< kInput: a script on standard input
  Language language;
  Kind kind;
  std::string what;                    ///< the file, the module or the code; empty for kInput
  std::vector<std::string> arguments;  ///< the words after the script, module or code
};

/// Finds the script, module or code that a command passes to an interpreter. Returns nullopt if the first
/// word is not Python, a POSIX shell or Rscript.
std::optional<Interpreted> WhatIsInterpreted(const std::vector<std::string>& words);

/// The name of a command for public places: metrics, titles, queues, lists of jobs. It is the base name of
/// the program or, for Python, a POSIX shell or Rscript, of the script or module that it runs: "train.py" for
/// {"python3", "-u", "dir/train.py", "--key=1"}. It is never code (python -c, bash -c), an argument or an
/// option; "job" if there is no suitable name.
std::string NameOfCommand(const std::vector<std::string>& words);

/// The directory of the Python environment whose `bin` contains `file`, or empty.
std::string PythonEnvironmentOf(const std::string& file);
/// The directory of the Python environment that is active for dmlc-submit (VIRTUAL_ENV, CONDA_PREFIX), or
/// empty.
std::string ActivePythonEnvironment();

/// Splits text into words like a shell, with '', "" and \ but without expansions. A \ at the end of a line
/// joins the line with the next one. Throws std::runtime_error if a quote is not closed.
std::vector<std::string> SplitWords(const std::string& line);

/// Quotes `word` so that a POSIX shell reads it back byte for byte; unchanged if it needs no quotes.
std::string ShellQuote(const std::string& word);
/// POSIX shell code that passes `input` to the standard input of `command` byte for byte, with a newline
/// added at the end if it lacks one. Uses a here-document whose delimiter is not a line of the input.
std::string WithInput(const std::string& command, const std::string& input);
/// The words of a command, quoted and separated by spaces.
std::string ShellCommand(const std::vector<std::string>& words);

}  // namespace warren::submit
