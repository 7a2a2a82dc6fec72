#include "submit/command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
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
  return directory.empty() ? "./" + name : fmt::format("{}/{}", directory, name);  // an empty part means here
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

void CheckRunnable(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) {
    const int error = errno;
    throw CommandError(fmt::format("cannot start '{}': {}", file, std::generic_category().message(error)),
                       error == ENOENT || error == ENOTDIR ? kNotFound : kNotExecutable);
  }
  if (S_ISDIR(status.st_mode)) {
    throw CommandError(fmt::format("cannot start '{}': it is a directory", file), kNotExecutable);
  }
  if (access(file.c_str(), X_OK) != 0) {
    throw CommandError(fmt::format("cannot start '{}': it is not executable (chmod +x makes it so)", file),
                       kNotExecutable);
  }
}

}  // namespace

std::string SearchPath() {
  const char* path = std::getenv("PATH");
  return path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
}

FoundCommand FindCommand(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) {
    CheckRunnable(name);
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
    throw CommandError(
        fmt::format("cannot start '{}': it is neither on PATH nor a file in this directory", name),
        kNotFound);
  }
  CheckRunnable(here);
  return {here, here, {}};
}

std::vector<std::string> SplitWords(const std::string& line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
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
      const bool escapes = c == '\\' && quote != '\'' && i + 1 < line.size();
      words.back() += escapes ? line[++i] : c;
    }
  }
  if (quote != 0) throw std::runtime_error(fmt::format("the other {} is missing in: {}", quote, line));
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

std::string ShellCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += ShellQuote(word);
  }
  return line;
}

}  // namespace warren::submit
