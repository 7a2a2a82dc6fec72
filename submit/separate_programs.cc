#include "submit/separate_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "submit/command.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;

/// Larger files are data.
constexpr std::uintmax_t kMostScriptBytes = std::uintmax_t{1} << 20;
constexpr std::uintmax_t kMostProgramBytes = std::uintmax_t{1} << 28;
constexpr std::size_t kMostFiles = 200;

/// The top-level module of Python, and what a compiled program that uses the library contains: the name of
/// the shared library, or, where rabit is linked in, the variable that it reads.
struct Library {
  std::string_view module;
  std::string_view in_program;
};
constexpr std::array<Library, 5> kLibraries = {{{"xgboost", "libxgboost"},
                                                {"lightgbm", "lib_lightgbm"},
                                                {"rabit", "librabit"},
                                                {"warren", "DMLC_TRACKER_URI"},
                                                {"horovod", ""}}};

/// Ways by which a script's processes find each other without the tracker.
constexpr std::array<std::string_view, 7> kOtherMeans = {
    "init_process_group", "torch.distributed", "mpi4py", "dask.distributed",
    "xgboost.dask",       "xgboost.spark",     "pyspark"};

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

std::string_view Trimmed(std::string_view text) {
  const auto is_blank = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
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

/// The modules, with dots, that Python's import statements in the text name.
std::vector<std::string> ImportedModules(std::string_view text) {
  std::vector<std::string> modules;
  for (std::string_view statement : Split(text, "\n;")) {
    statement = Trimmed(statement.substr(0, statement.find('#')));
    const std::vector<std::string_view> words = Split(statement, " \t(),\\\r");
    if (words.size() < 2) continue;
    if (words[0] == "from") {
      modules.emplace_back(words[1]);
      // "from . import module" or "from package import module"
      for (std::size_t i = 3; i < words.size(); ++i) {
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

/// Reads files, each once, and follows what they name.
class Search {
 public:
  explicit Search(std::string path) : path_(std::move(path)) {}

  void LookAt(const std::vector<std::string>& command) {
    LookAtCommand(command, fs::path("."), "the command");
    while (!waiting_.empty() && !has_other_means_) {
      const fs::path file = std::exchange(waiting_.front(), {});
      waiting_.pop_front();
      LookAtFile(file);
    }
  }

  std::optional<LibraryUse> result() const { return has_other_means_ ? std::nullopt : found_; }

 private:
  /// The words of a command. Those that are no option may be programs, modules of Python after -m, and text
  /// after -c.
  void LookAtCommand(const std::vector<std::string>& words, const fs::path& directory,
                     const std::string& name) {
    bool is_awaited = true;  // the program that is on PATH, perhaps behind those that start another
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (i > 0 && words[i - 1] == "-m") {
        LookAtModule(word, directory, name);
      } else if (word.find_first_of(" \n") != std::string::npos) {
        LookAtText(name, word, directory);
      } else if (word.empty() || word.front() == '-') {
        continue;
      } else if (word.find('/') != std::string::npos || IsScript(word)) {
        Add(word);
        is_awaited = false;
      } else if (is_awaited) {
        is_awaited = StartsAnother(word) || !AddFromPath(word);
      }
    }
  }

  static bool StartsAnother(std::string_view word) {
    constexpr std::array<std::string_view, 16> kWords = {
        "env",    "exec",   "nice", "nohup", "time", "timeout", "taskset", "numactl",
        "stdbuf", "setsid", "if",   "then",  "do",   "else",    "while",   "!"};
    return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
  }

  bool AddFromPath(const std::string& word) {
    try {
      Add(FindCommand(word, path_).file);
      return true;
    } catch (const CommandError&) {
      return false;
    }
  }

  static bool IsScript(const fs::path& file) {
    constexpr std::array<std::string_view, 3> kSuffixes = {".py", ".sh", ".bash"};
    return std::find(kSuffixes.begin(), kSuffixes.end(), file.extension().string()) != kSuffixes.end();
  }

  void Add(const fs::path& file) {
    if (seen_.size() < kMostFiles && seen_.insert(file.lexically_normal().string()).second)
      waiting_.push_back(file);
  }

  void LookAtFile(const fs::path& file) {
    const auto bytes = Read(file, IsScript(file) ? kMostScriptBytes : kMostProgramBytes);
    if (!bytes) return;
    if (bytes->starts_with("\177ELF")) return Note(file.string(), LibraryInProgram(*bytes));
    if (IsScript(file) || bytes->starts_with("#!")) LookAtText(file.string(), *bytes, file.parent_path());
  }

  /// A script of Python or of a shell: the imports of the one, the words of the other.
  void LookAtText(const std::string& name, std::string_view text, const fs::path& directory) {
    has_other_means_ = has_other_means_ ||
                       std::any_of(kOtherMeans.begin(), kOtherMeans.end(),
                                   [&](auto means) { return text.find(means) != std::string_view::npos; });
    for (const std::string& module : ImportedModules(text)) LookAtModule(module, directory, name);
    if (fs::path(name).extension() == ".py") return;
    for (const std::string_view line : Split(text, "\n;|&()")) {
      std::vector<std::string> words;
      for (const std::string_view word : Split(line, " \t\r'\"")) words.emplace_back(word);
      LookAtCommand(words, directory, name);
    }
  }

  void LookAtModule(std::string_view module, const fs::path& directory, const std::string& importer) {
    Note(importer, LibraryOfModule(module.substr(0, module.find('.'))));
    // One dot is the importer's own package, each further one a folder above it.
    fs::path file = directory;
    if (module.starts_with('.')) module.remove_prefix(1);
    for (; module.starts_with('.'); module.remove_prefix(1)) file /= "..";
    for (const std::string_view part : Split(module, ".")) file /= part;
    std::error_code error;
    for (const fs::path& one :
         {fs::path(file.string() + ".py"), file / "__init__.py", file / "__main__.py"}) {
      if (fs::is_regular_file(one, error)) Add(one);
    }
  }

  void Note(const std::string& file, std::string_view library) {
    if (!library.empty() && !found_) found_ = {file, std::string(library)};
  }

  std::string path_;
  std::deque<fs::path> waiting_;
  std::set<std::string> seen_;
  std::optional<LibraryUse> found_;
  bool has_other_means_ = false;
};

std::string AdviceFor(const std::string& library) {
  if (library == "xgboost") return "put the training into `with warren.xgboost.communicator():`";
  if (library == "lightgbm") return "put the training into `with warren.lightgbm.communicator():`";
  if (library == "horovod") return "call hvd.init(), with `python -m warren.compat` in front of the script";
  if (library == "rabit") return "it has to call rabit's Init, or XGBoost's";
  return "put the work into a communicator() or a context() of the module";
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
      "no worker joined the job: {} separate programs ran. {} uses {}: for one job of all workers, {}; if "
      "separate "
      "programs are meant, --no-tracker says so",
      num_workers, use->file, use->library, AdviceFor(use->library));
}

}  // namespace warren::submit
