#include "submit/job/separate_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "submit/job/shell_commands.h"
#include "submit/options/values.h"
#include "submit/process/command.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;

/// Limits on the size of scripts and of compiled programs. Larger files are assumed to be data and not read.
constexpr std::uintmax_t kMostScriptBytes = std::uintmax_t{1} << 20;
constexpr std::uintmax_t kMostProgramBytes = std::uintmax_t{1} << 28;
constexpr std::size_t kMostFiles = 200;
constexpr int kMostNestedCommands = 20;

/// A library: its top-level Python module, and a string that compiled programs using the library contain
/// (empty if not known): the name of its shared library. In the entry of warren, the string is the name of a
/// variable that rabit reads, which also reveals a statically linked rabit.
struct Library {
  std::string_view module;
  std::string_view in_program;
};
constexpr std::array<Library, 5> kLibraries = {{{"xgboost", "libxgboost"},
                                                {"lightgbm", "lib_lightgbm"},
                                                {"rabit", "librabit"},
                                                {"warren", "DMLC_TRACKER_URI"},
                                                {"horovod", ""}}};

/// Names that occur in scripts whose processes find each other without the tracker.
constexpr std::array<std::string_view, 7> kOtherMeans = {
    "init_process_group", "torch.distributed", "mpi4py", "dask.distributed",
    "xgboost.dask",       "xgboost.spark",     "pyspark"};

/// Programs and shell words that run the command that follows them.
constexpr std::array<std::string_view, 19> kStarters = {
    "env",    "exec",  "command", "nice",     "nohup", "time", "timeout", "taskset", "numactl", "stdbuf",
    "setsid", "xargs", "uv",      "coverage", "conda", "run",  "poetry",  "strace",  "perf"};
constexpr std::array<std::string_view, 9> kKeywords = {"if",    "then",  "elif", "do", "else",
                                                       "while", "until", "!",    "{"};

/// Python modules that run the script that follows them.
constexpr std::array<std::string_view, 8> kRunningModules = {
    "warren.compat", "cProfile", "profile", "trace", "pdb", "coverage", "memory_profiler", "debugpy"};

template <typename Names>
bool IsAmong(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view LibraryOfModule(std::string_view module) {
  const auto found = std::find_if(kLibraries.begin(), kLibraries.end(),
                                  [&](const Library& library) { return library.module == module; });
  return found == kLibraries.end() ? std::string_view() : found->module;
}

std::string_view LibraryInProgram(std::string_view bytes) {
  for (const Library& library : kLibraries) {
    if (library.in_program.empty()) continue;
    const std::boyer_moore_horspool_searcher searcher(library.in_program.begin(), library.in_program.end());
    if (std::search(bytes.begin(), bytes.end(), searcher) == bytes.end()) continue;
    return library.in_program == "DMLC_TRACKER_URI" ? "rabit" : library.module;
  }
  return {};
}

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// The Python code without comments, with all strings emptied and with continuation lines joined.
std::string WithoutStrings(std::string_view text) {
  std::string code;
  int depth = 0;  // nesting of brackets, within which a statement continues on the next line
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '\'' || c == '"') {
      const std::string_view three = text.substr(i, 3);
      const bool is_long = three == "\'\'\'" || three == "\"\"\"";
      const std::string_view quote = is_long ? three : text.substr(i, 1);
      for (i += quote.size(); i < text.size() && text.substr(i, quote.size()) != quote; ++i) {
        if (text[i] == '\\') ++i;
      }
      i += quote.size() - 1;
      code += "\"\"";
    } else if (c == '\\') {
      i = std::min(text.find('\n', i), text.size());
      code += ' ';
    } else if (c == '\n' && depth > 0) {
      code += ' ';
    } else {
      const int step = std::string_view("([{").find(c) != std::string_view::npos   ? 1
                       : std::string_view(")]}").find(c) != std::string_view::npos ? -1
                                                                                   : 0;
      depth = std::max(depth + step, 0);
      code += c;
    }
  }
  return code;
}

/// The dotted names of the modules in import statements.
std::vector<std::string> ImportedModules(std::string_view code) {
  std::vector<std::string> modules;
  for (const std::string_view statement : Split(code, "\n;:")) {
    const std::vector<std::string_view> words = Split(statement, " \t(),\r\f");
    if (words.size() < 2) continue;
    if (words[0] == "from") {
      modules.emplace_back(words[1]);
      // "from . import module" or "from package import module"
      for (std::size_t i = 3; i < words.size(); ++i) {
        if (words[i] == "as") {
          ++i;
          continue;
        }
        const bool relative = words[1].ends_with('.');
        modules.push_back(fmt::format("{}{}{}", words[1], relative ? "" : ".", words[i]));
      }
    } else if (words[0] == "import") {
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "as") {
          ++i;
        } else {
          modules.emplace_back(words[i]);
        }
      }
    }
  }
  return modules;
}

/// Whether `dotted` contains one of kOtherMeans as complete parts: "a.b.c" contains "a.b" and "c".
bool NamesOtherMeans(std::string_view dotted) {
  const std::string parts = fmt::format(".{}.", dotted);
  return std::any_of(kOtherMeans.begin(), kOtherMeans.end(), [&](std::string_view means) {
    return dotted.find(means) != std::string_view::npos &&
           parts.find(fmt::format(".{}.", means)) != std::string::npos;
  });
}

bool UsesOtherMeans(std::string_view code) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  while (!code.empty()) {
    const auto* const begin = std::find_if(code.begin(), code.end(), is_part);
    const auto* const end = std::find_if_not(begin, code.end(), is_part);
    if (NamesOtherMeans({begin, end})) return true;
    code.remove_prefix(static_cast<std::size_t>(end - code.begin()));
  }
  return false;
}

std::optional<std::string> Read(const fs::path& file, std::uintmax_t most_bytes) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error || bytes > most_bytes) return std::nullopt;
  std::ifstream stream(file, std::ios::binary);
  std::string text(bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return text;
}

/// A command and the context in which it runs.
struct Running {
  std::vector<std::string> words;
  fs::path directory;  ///< the working directory; empty if unknown
  std::string named_by;
  std::optional<std::string> here_document = {};
  std::string input_file = {};
  int depth = 0;
};

/// Reads the programs that a command runs, and the files that these programs run, each file once.
class Search {
 public:
  explicit Search(std::string path) : path_(std::move(path)) {}

  void LookAt(const std::vector<std::string>& command) { LookAtCommand({command, ".", "the command"}); }

  std::optional<LibraryUse> result() const { return has_other_means_ ? std::nullopt : found_; }

 private:
  /// Examines the program that the words name, possibly after programs that start it (kStarters), and the
  /// files that it runs.
  void LookAtCommand(const Running& running) {
    if (running.depth > kMostNestedCommands) return;
    bool is_started = false;  // a starter or variable came before, so a word may be an option's value
    for (std::size_t i = 0; i < running.words.size(); ++i) {
      const std::string& word = running.words[i];
      const std::string name = word.substr(word.rfind('/') + 1);
      const bool is_variable = word.starts_with('$');
      const bool is_assignment = word.find('=') != std::string::npos && word.front() != '=';
      if (word.empty() || word.front() == '-' || is_assignment || IsAmong(kKeywords, word)) continue;
      Running rest = running;
      rest.words.erase(rest.words.begin(), rest.words.begin() + static_cast<std::ptrdiff_t>(i));
      ++rest.depth;
      if (word == "." || word == "source") rest.words[0] = "sh";
      if (is_variable && Lower(word).find("py") != std::string::npos) rest.words[0] = "python";
      if (const auto interpreted = WhatIsInterpreted(rest.words))
        return LookAtInterpreted(rest, *interpreted);
      if ((IsAmong(kStarters, name) && (is_started || name != "run")) || is_variable) {
        is_started = true;
      } else if (is_started && word.ends_with(".py")) {
        return LookAtScript(At(running.directory, word), Language::kPython, rest);
      } else if (LookAtProgram(rest) || !is_started) {
        return;
      }
    }
  }

  /// Resolves `file` against `directory`; empty if `file` is relative and the directory is unknown.
  static fs::path At(const fs::path& directory, const std::string& file) {
    if (file.starts_with('/') || directory == ".") return file;
    return directory.empty() ? fs::path() : directory / file;
  }

  void LookAtInterpreted(const Running& running, const Interpreted& interpreted) {
    using Kind = Interpreted::Kind;
    const bool is_python = interpreted.language == Language::kPython;
    Running rest = running;
    rest.words.erase(rest.words.begin() + 1, rest.words.end());
    rest.words.insert(rest.words.end(), interpreted.arguments.begin(), interpreted.arguments.end());
    if (interpreted.language == Language::kR) return;
    switch (interpreted.kind) {
      case Kind::kScript:
        return LookAtScript(At(running.directory, interpreted.what), interpreted.language, rest);
      case Kind::kCode:
        if (is_python) return LookAtPython(running.named_by, interpreted.what, running.directory, {});
        if (rest.words.size() > 1) rest.words.erase(rest.words.begin());  // the word after the code is $0
        return LookAtShell(interpreted.what, rest, running.directory);
      case Kind::kInput:
        if (!running.input_file.empty())
          return LookAtScript(At(running.directory, running.input_file), interpreted.language, rest);
        if (!running.here_document) return;
        if (is_python) return LookAtPython(running.named_by, *running.here_document, running.directory, {});
        return LookAtShell(*running.here_document, rest, running.directory);
      case Kind::kModule:
        break;
    }
    if (IsAmong(kRunningModules, interpreted.what)) {
      // Before the module, so that the script is reported rather than warren.compat, which runs it.
      const auto script = std::find_if(interpreted.arguments.begin(), interpreted.arguments.end(),
                                       [](const std::string& word) { return word.ends_with(".py"); });
      if (script != interpreted.arguments.end())
        LookAtScript(At(running.directory, *script), Language::kPython, rest);
    }
    LookAtModule(interpreted.what, running.directory, {}, running.named_by, true);
  }

  /// Examines the program that the first word names. Returns false if no program has this name.
  bool LookAtProgram(const Running& running) {
    fs::path file;
    try {
      const std::string& word = running.words.front();
      const bool is_path = word.find('/') != std::string::npos;
      file = is_path ? At(running.directory, word) : fs::path(word);
      if (file.empty()) return false;
      file = FindCommand(file.string(), path_).file;
    } catch (const CommandError&) {
      return false;
    }
    if (!IsNew(file)) return true;
    const auto bytes = Read(file, kMostProgramBytes);
    if (!bytes) return true;
    if (bytes->starts_with("\177ELF")) {
      Note(file.string(), LibraryInProgram(*bytes));
    } else if (bytes->starts_with("#!") && bytes->size() <= kMostScriptBytes) {
      seen_.erase(file.lexically_normal().string());
      Running script = running;
      script.words.clear();
      const std::string_view line = std::string_view(*bytes).substr(2, bytes->find('\n') - 2);
      for (const std::string_view word : Split(line, " \t\r")) script.words.emplace_back(word);
      script.words.push_back(running.directory == "." ? file.string() : fs::absolute(file).string());
      script.words.insert(script.words.end(), running.words.begin() + 1, running.words.end());
      LookAtCommand(script);
    }
    return true;
  }

  bool IsNew(const fs::path& file) {
    return seen_.size() < kMostFiles && seen_.insert(file.lexically_normal().string()).second;
  }

  /// Examines a script, or the __main__.py of a folder.
  void LookAtScript(fs::path file, Language language, const Running& running) {
    std::error_code error;
    if (language == Language::kPython && fs::is_directory(file, error)) file /= "__main__.py";
    if (file.empty() || !IsNew(file)) return;
    const auto text = Read(file, kMostScriptBytes);
    if (!text) return;
    if (language == Language::kPython) {
      const fs::path folder = file.parent_path();
      return LookAtPython(file.string(), *text, folder.empty() ? "." : folder, {});
    }
    Running rest = running;
    rest.named_by = file.string();
    const fs::path folder = file.parent_path();
    LookAtShell(*text, rest, folder.empty() ? "." : folder);
  }

  /// `running`: the words are the shell, or $0, and the arguments of the script. `scripts_folder`: the value
  /// of `dirname $0`.
  void LookAtShell(std::string_view text, const Running& running, const fs::path& scripts_folder) {
    const std::vector<std::string> arguments(running.words.begin() + (running.words.empty() ? 0 : 1),
                                             running.words.end());
    std::vector<fs::path> directories = {running.directory};
    for (SimpleCommand& line : CommandsOfShell(text)) {
      if (line.kind == SimpleCommand::Kind::kOpens) {
        directories.push_back(directories.back());
      } else if (line.kind == SimpleCommand::Kind::kCloses) {
        if (directories.size() > 1) directories.pop_back();
      } else if (!line.words.empty() && (line.words[0] == "cd" || line.words[0] == "pushd")) {
        directories.back() = Changed(directories.back(), line.words, scripts_folder);
      } else {
        LookAtCommand({WithArguments(line.words, arguments), directories.back(), running.named_by,
                       std::move(line.here_document), std::move(line.input_file), running.depth + 1});
      }
    }
  }

  static fs::path Changed(const fs::path& from, const std::vector<std::string>& cd,
                          const fs::path& scripts_folder) {
    if (cd.size() != 2) return {};
    const std::string& to = cd[1];
    if (to.find("dirname") != std::string::npos && to.ends_with(')')) return scripts_folder;
    if (to.find_first_of("$~*?") != std::string::npos || to == "-") return {};
    return At(from, to).lexically_normal();
  }

  static std::vector<std::string> WithArguments(const std::vector<std::string>& words,
                                                const std::vector<std::string>& arguments) {
    std::vector<std::string> all;
    for (const std::string& word : words) {
      if (word == "$@" || word == "$*" || word == "${@}") {
        all.insert(all.end(), arguments.begin(), arguments.end());
      } else if (word.size() == 2 && word[0] == '$' && word[1] > '0' && word[1] <= '9') {
        const auto number = static_cast<std::size_t>(word[1] - '0');
        all.push_back(number <= arguments.size() ? arguments[number - 1] : std::string());
      } else {
        all.push_back(word);
      }
    }
    return all;
  }

  /// `root`: the folder of modules next to the script; empty if unknown. `package`: the package of the text;
  /// empty if the text is not a module.
  void LookAtPython(const std::string& name, std::string_view text, const fs::path& root,
                    const fs::path& package) {
    const std::string code = WithoutStrings(text);
    has_other_means_ = has_other_means_ || UsesOtherMeans(code);
    for (const std::string& module : ImportedModules(code)) LookAtModule(module, root, package, name, false);
  }

  void LookAtModule(std::string_view module, const fs::path& root, const fs::path& package,
                    const std::string& importer, bool is_run) {
    has_other_means_ = has_other_means_ || NamesOtherMeans(module);
    Note(importer, LibraryOfModule(module.substr(0, module.find('.'))));
    // One dot means the importer's own package; each further dot goes up one folder.
    fs::path file = module.starts_with('.') ? package : root;
    if (file.empty()) return;
    if (module.starts_with('.')) module.remove_prefix(1);
    for (; module.starts_with('.'); module.remove_prefix(1)) file /= "..";
    // All packages along the dotted path are imported as well.
    const std::vector<std::string_view> parts = Split(module, ".");
    if (parts.empty()) LookAtModuleFile(file / "__init__.py", root);
    for (const std::string_view part : parts) {
      file /= part;
      LookAtModuleFile(file.string() + ".py", root);
      LookAtModuleFile(file / "__init__.py", root);
    }
    if (is_run) LookAtModuleFile(file / "__main__.py", root);
  }

  void LookAtModuleFile(const fs::path& file, const fs::path& root) {
    std::error_code error;
    if (!fs::is_regular_file(file, error) || !IsNew(file)) return;
    if (const auto text = Read(file, kMostScriptBytes))
      LookAtPython(file.lexically_normal().string(), *text, root, file.parent_path());
  }

  void Note(const std::string& file, std::string_view library) {
    if (!library.empty() && !found_) found_ = {file, std::string(library)};
  }

  std::string path_;
  std::set<std::string> seen_;
  std::optional<LibraryUse> found_;
  bool has_other_means_ = false;
};

std::string AdviceFor(const std::string& library) {
  if (library == "xgboost") return "run the training inside `with warren.xgboost.communicator():`";
  if (library == "lightgbm") return "run the training inside `with warren.lightgbm.communicator():`";
  if (library == "horovod") return "call hvd.init(), with `python -m warren.compat` in front of the script";
  if (library == "rabit") return "call rabit's Init, or XGBoost's";
  return "run the work inside the module's communicator() or context()";
}

}  // namespace

std::optional<LibraryUse> FindLibraryUse(const std::vector<std::string>& command, const std::string& path) {
  Search search(path);
  search.LookAt(command);
  return search.result();
}

std::string SeparateProgramsStory(int num_workers, const std::vector<std::string>& command,
                                  const std::string& path) {
  const auto use = FindLibraryUse(command, path);
  if (!use) return {};
  return fmt::format(
      "no worker joined the job: {} separate programs ran. {} uses {}: to run all workers as one job, {}; for separate programs, use --no-tracker",
      num_workers, use->file, use->library, AdviceFor(use->library));
}

}  // namespace warren::submit
