#include "submit/process/command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace warren::submit {
namespace {

bool IsFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool IsExecutableFile(const std::string& path) {
  return IsFile(path) && access(path.c_str(), X_OK) == 0;
}

std::string FileIn(std::string_view directory, const std::string& name) {
  // An empty part of PATH is the current directory.
  return directory.empty() ? "./" + name : fmt::format("{}/{}", directory, name);
}

std::optional<std::string> FindOnPath(const std::string& name, std::string_view path) {
  for (;;) {
    const std::size_t colon = path.find(':');
    std::string candidate = FileIn(path.substr(0, colon), name);
    if (IsExecutableFile(candidate)) return candidate;
    if (colon == std::string_view::npos) return std::nullopt;
    path.remove_prefix(colon + 1);
  }
}

/// The interpreters of scripts, by file name extension.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kProgramsOfEndings = {
    {{".py", "python"},
     {".sh", "sh"},
     {".bash", "bash"},
     {".R", "Rscript"},
     {".r", "Rscript"},
     {".jl", "julia"},
     {".pl", "perl"}}};

/// The command that runs a script, e.g. "python train.py"; empty if the kind of script is unknown.
std::string ScriptCommand(const std::string& file, const std::string& name, const std::string& path) {
  for (const auto& [ending, interpreter] : kProgramsOfEndings) {
    if (!file.ends_with(ending)) continue;
    const bool is_python3 =
        interpreter == "python" && !FindOnPath("python", path) && FindOnPath("python3", path);
    return fmt::format("{}{} {}", interpreter, is_python3 ? "3" : "", ShellQuote(name));
  }
  return {};
}

/// Whether a script's first line names its interpreter.
bool NamesInterpreter(const std::string& file) {
  std::ifstream stream(file);
  return stream.get() == '#' && stream.get() == '!';
}

/// A hint at what the user may have meant by a command that cannot be found; empty or beginning with "; ".
std::string HintForMissing(const std::string& name, const std::string& path) {
  const std::size_t blank = name.find_first_of(" \t");
  if (blank != std::string::npos && blank > 0 && FindOnPath(name.substr(0, blank), path)) {
    return fmt::format("; do not put the command and its arguments into one pair of quotes: {}", name);
  }
  const std::size_t equals = name.find('=');
  if (equals != std::string::npos && equals > 0) {
    return fmt::format("; did you mean --env {}", ShellQuote(name));
  }
  if (name == "python" && FindOnPath("python3", path)) return "; did you mean python3";
  return {};
}

void CheckRunnable(const std::string& file, const std::string& name, const std::string& path) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) {
    const int error = errno;
    throw CommandError(fmt::format("cannot start '{}': {}", file, std::generic_category().message(error)),
                       error == ENOENT || error == ENOTDIR ? kNotFound : kNotExecutable);
  }
  if (S_ISDIR(status.st_mode)) {
    throw CommandError(fmt::format("cannot start '{}': it is a directory", file), kNotExecutable);
  }
  const std::string script = ScriptCommand(file, name, path);
  const std::string meant = script.empty() ? "" : fmt::format("; did you mean: {}", script);
  if (access(file.c_str(), X_OK) != 0) {
    throw CommandError(fmt::format("cannot start '{}': it is not executable (use chmod +x){}", file, meant),
                       kNotExecutable, !script.empty());
  }
  if (!script.empty() && !NamesInterpreter(file)) {
    throw CommandError(
        fmt::format("cannot start '{}': it has no first line such as #!/usr/bin/env python3{}", file, meant),
        kNotExecutable, true);
  }
}

/// An interpreter, and those of its options that are needed to find the script among its arguments.
struct Interpreter {
  std::string_view name;  ///< without a version
  Language language;
  std::string_view code;        ///< letters of options that take code
  std::string_view input;       ///< letters of options after which the script is standard input
  std::string_view module;      ///< letters of options whose value is the name of a module
  std::string_view values;      ///< letters of options that take a value
  std::string_view long_value;  ///< a long option that takes the next word as its value, or empty
};

constexpr std::array<Interpreter, 9> kInterpreters = {
    {{"python", Language::kPython, "c", "", "m", "WX", "--check-hash-based-pycs"},
     {"pypy", Language::kPython, "c", "", "m", "WX", "--check-hash-based-pycs"},
     {"sh", Language::kShell, "c", "s", "", "oO", ""},
     {"bash", Language::kShell, "c", "s", "", "oO", "--rcfile"},
     {"dash", Language::kShell, "c", "s", "", "oO", ""},
     {"ash", Language::kShell, "c", "s", "", "oO", ""},
     {"ksh", Language::kShell, "c", "s", "", "oO", ""},
     {"zsh", Language::kShell, "c", "s", "", "oO", ""},
     {"Rscript", Language::kR, "e", "", "", "", ""}}};

const Interpreter* InterpreterCalled(std::string_view program) {
  // Names with versions are accepted, too, such as "python3.13t".
  const std::string_view name = program.substr(0, program.find_first_of("0123456789"));
  const bool versioned = program.find_first_not_of("0123456789.t", name.size()) == std::string_view::npos;
  const auto* const found = std::find_if(kInterpreters.begin(), kInterpreters.end(),
                                         [&](const Interpreter& one) { return one.name == name; });
  return versioned && found != kInterpreters.end() ? found : nullptr;
}

/// The last part of a path; empty if the path has characters that are usual in code but not in names of
/// programs and scripts.
std::string PlainBaseName(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 || c == '.' || c == '_' || c == '-' || c == '+';
  };
  const bool plain = path.find_first_of("\n\"'();=$`") == std::string_view::npos &&
                     std::all_of(name.begin(), name.end(), is_plain);
  return plain ? std::string(name) : std::string();
}

bool IsOption(std::string_view word) {
  return !word.empty() && (word.front() == '-' || word.front() == '+');
}

/// The value of a one-letter option: the rest of its word or, if that is empty, the next word.
std::string ValueAt(const std::vector<std::string>& words, std::size_t& i, std::size_t letter) {
  if (letter + 1 < words[i].size()) return words[i].substr(letter + 1);
  return ++i < words.size() ? words[i] : std::string();
}

}  // namespace

std::optional<Interpreted> WhatIsInterpreted(const std::vector<std::string>& words) {
  using Kind = Interpreted::Kind;
  if (words.empty()) return std::nullopt;
  const std::string_view program = words.front();
  const Interpreter* const interpreter = InterpreterCalled(program.substr(program.rfind('/') + 1));
  if (interpreter == nullptr) return std::nullopt;
  Interpreted found{interpreter->language, Kind::kInput, "", {}};
  const auto takes = [](std::string_view letters, char letter) {
    return letters.find(letter) != std::string_view::npos;
  };
  bool awaits_code = false;  // whether -c was seen; other options of a shell may come before the code
  std::size_t i = 1;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word == "-" || !IsOption(word)) break;
    if (word.starts_with("--")) {
      i += word == interpreter->long_value ? 1 : 0;
      continue;
    }
    for (std::size_t k = 1; k < word.size(); ++k) {
      const bool is_code = takes(interpreter->code, word[k]);
      if (is_code && interpreter->language == Language::kShell) {
        awaits_code = true;
      } else if (is_code || takes(interpreter->module, word[k])) {
        found.kind = is_code ? Kind::kCode : Kind::kModule;
        found.what = ValueAt(words, i, k);
        found.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(i + 1, words.size())),
                               words.end());
        return found;
      } else if (takes(interpreter->input, word[k])) {
        return found;
      } else if (takes(interpreter->values, word[k])) {
        i += k + 1 == word.size() ? 1 : 0;
        break;
      }
    }
  }
  if (i >= words.size() || (words[i] == "-" && !awaits_code)) return found;
  found.kind = awaits_code ? Kind::kCode : Kind::kScript;
  found.what = words[i];
  found.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
  return found;
}

std::string NameOfCommand(const std::vector<std::string>& words) {
  if (words.empty()) return "job";
  // The first word may be a whole command line (only a remote shell could run it). Only the part before the
  // first blank is kept, because the rest may be code.
  const std::string_view first = words.front();
  std::string program = PlainBaseName(first.substr(0, first.find_first_of(" \t\n")));
  if (program.empty()) return "job";
  const auto found = WhatIsInterpreted(words);
  const bool has_name =
      found && (found->kind == Interpreted::Kind::kScript || found->kind == Interpreted::Kind::kModule);
  std::string script = has_name ? PlainBaseName(found->what) : std::string();
  return script.empty() ? program : script;
}

std::string SearchPath() {
  const char* path = std::getenv("PATH");
  return path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
}

FoundCommand FindCommand(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) {
    CheckRunnable(name, name, path);
    return {name, name, {}};
  }
  const std::string here = "./" + name;
  if (const auto found = FindOnPath(name, path)) {
    std::string note;
    if (IsExecutableFile(here) && *found != here) {
      note = fmt::format("'{}' is {}; write {} for the one in this directory", name, *found, here);
    }
    return {name, *found, std::move(note)};
  }
  if (!IsFile(here)) {
    throw CommandError(fmt::format("cannot start '{}': it is neither on PATH nor a file in this directory{}",
                                   name, HintForMissing(name, path)),
                       kNotFound);
  }
  CheckRunnable(here, name, path);
  return {here, here, {}};
}

std::string PythonEnvironmentOf(const std::string& file) {
  const std::filesystem::path bin = std::filesystem::absolute(file).lexically_normal().parent_path();
  if (bin.filename() != "bin") return {};
  std::error_code error;
  const std::filesystem::path directory = bin.parent_path();
  const bool found = std::filesystem::exists(directory / "pyvenv.cfg", error) ||
                     std::filesystem::exists(directory / "conda-meta", error);
  return found ? directory.string() : std::string();
}

std::string ActivePythonEnvironment() {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* directory = std::getenv(name);
    if (directory == nullptr) continue;
    std::string found = PythonEnvironmentOf(fmt::format("{}/bin/python", directory));
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<std::string> SplitWords(const std::string& line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < line.size();
    if (escapes && line[i + 1] == '\n') {
      ++i;
      continue;
    }
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      // In double quotes, a backslash stays unless one of these characters follows.
      const bool keeps =
          escapes && quote == '"' && std::string_view("$`\"\\").find(line[i + 1]) == std::string_view::npos;
      words.back() += escapes && !keeps ? line[++i] : c;
    }
  }
  if (quote != 0) throw std::runtime_error(fmt::format("unmatched {} in: {}", quote, line));
  return words;
}

std::string ShellQuote(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string WithInput(const std::string& command, const std::string& input) {
  const std::string lines = fmt::format("\n{}{}", input, input.empty() || input.ends_with('\n') ? "" : "\n");
  std::string end = "END_OF_INPUT";
  for (int number = 1; lines.find(fmt::format("\n{}\n", end)) != std::string::npos; ++number) {
    end = fmt::format("END_OF_INPUT_{}", number);
  }
  return fmt::format("{} <<'{}'{}{}\n", command, end, lines, end);
}

std::string ShellCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += ShellQuote(word);
  }
  return line;
}

}  // namespace warren::submit
