// The command of a job: which file it names, and how it is shown so that a shell reads it back unchanged.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace warren::submit {

/// Exit codes for a command that cannot be run, as shells have them.
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

/// The command cannot be run; dmlc-submit exits with `exit_code`.
class CommandError : public std::runtime_error {
 public:
  CommandError(const std::string& message, int code, bool lacks_interpreter = false)
      : std::runtime_error(message), exit_code(code), is_bare_script(lacks_interpreter) {}
  int exit_code;
  bool is_bare_script;  ///< a script such as train.py, without the program that runs it
};

struct FoundCommand {
  std::string argv0;  ///< what the process sees as its name: as written, or "./name"
  std::string file;   ///< what is executed
  std::string note;   ///< something the user may not expect; empty: nothing
  /// The directory of the environment of Python (a virtual environment, or one of conda) that the processes
  /// are to use on other hosts, too; empty: none.
  std::string python_environment = {};
};

/// The value of PATH, or the usual one if it is not set.
std::string SearchPath();

/// Looks for `name` as users expect it: with a '/' it is the file itself; else it is searched on `path` (the
/// value of PATH), and when it is not there an executable file of that name in the current directory is taken
/// as "./name". Throws CommandError.
FoundCommand FindCommand(const std::string& name, const std::string& path);

enum class Language { kPython, kShell, kR };

/// What an interpreter is given to run.
struct Interpreted {
  enum class Kind { kScript, kModule, kCode, kInput };  ///< kInput: a script on standard input
  Language language;
  Kind kind;
  std::string what;                    ///< the file, the module or the code; empty for kInput
  std::vector<std::string> arguments;  ///< the words behind it, for kScript, kModule and kCode
};

/// nullopt: the first of these words names no Python, POSIX shell or Rscript.
std::optional<Interpreted> WhatIsInterpreted(const std::vector<std::string>& words);

/// What a command is called where others may read it: metrics, titles, queues, lists of jobs. The base name
/// of the program or, behind Python, a POSIX shell or Rscript, of the script or module that it runs:
/// "train.py" of {"python3", "-u", "dir/train.py", "--key=1"}. Never code (python -c, bash -c), an argument,
/// or an option.
std::string NameOfCommand(const std::vector<std::string>& words);

/// The directory of the Python environment whose `bin` has this file; empty if there is none.
std::string PythonEnvironmentOf(const std::string& file);
/// The Python environment that is active where dmlc-submit runs (VIRTUAL_ENV, CONDA_PREFIX); empty if there
/// is none.
std::string ActivePythonEnvironment();

/// The words of a line as a shell would split it, with '', "" and \ but no expansions. Throws
/// std::runtime_error at a quote without its other end.
std::vector<std::string> SplitWords(const std::string& line);

/// `word` so that a POSIX shell reads it back byte for byte; left alone when it needs no quotes.
std::string ShellQuote(const std::string& word);
/// A line of a POSIX shell that gives `input` to `command` as its standard input, byte for byte, except that
/// a missing newline at the end is added: a here-document whose delimiter is not a line of the input.
std::string WithInput(const std::string& command, const std::string& input);
/// The words of a command, quoted, with spaces between.
std::string ShellCommand(const std::vector<std::string>& words);

}  // namespace warren::submit
