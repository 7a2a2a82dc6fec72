// The configuration file's grammar.
#include "examples/xgboost/xgb_train/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace warren::xgb_train {
namespace {

constexpr std::string_view kBlank = " \t\f\v";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string_view TrimLeft(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text;
}

std::string_view TrimRight(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

// Parses one line from left to right; every error quotes the line and its origin.
class LineParser {
 public:
  LineParser(std::string_view line, std::string origin)
      : line_(TrimRight(line)), rest_(TrimLeft(line_)), origin_(std::move(origin)) {}

  bool IsEmpty() const { return rest_.empty() || rest_.front() == '#'; }

  Setting Parse() {
    std::string key = TakeWord("=#", "a key");
    if (rest_.empty() || rest_.front() != '=') Complain("key = value");
    rest_ = TrimLeft(rest_.substr(1));
    std::string value = TakeWord("#", "a value after '='");
    if (!IsEmpty()) Complain("one value; quote a value that contains blanks or quotes");
    return {std::move(key), std::move(value), origin_};
  }

 private:
  // Takes a bare or quoted word and the blanks after it.
  std::string TakeWord(std::string_view stops, std::string_view expected) {
    const bool quoted = !rest_.empty() && (rest_.front() == '"' || rest_.front() == '\'');
    std::string word = quoted ? TakeQuoted() : TakeBare(stops);
    if (word.empty()) Complain(expected);
    rest_ = TrimLeft(rest_);
    return word;
  }

  std::string TakeQuoted() {
    const char quote = rest_.front();
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) Complain(fmt::format("a closing {}", quote));
    std::string word(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return word;
  }

  std::string TakeBare(std::string_view stops) {
    const std::string all_stops = std::string(stops).append(kBlank).append("\"'");
    const size_t length = std::min(rest_.find_first_of(all_stops), rest_.size());
    std::string word(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return word;
  }

  [[noreturn]] void Complain(std::string_view expected) const {
    throw ConfigError(fmt::format("{}: found: {}; expected: {}", origin_, TrimLeft(line_), expected));
  }

  std::string_view line_;
  std::string_view rest_;
  std::string origin_;
};

}  // namespace

std::vector<Setting> ParseConfig(std::string_view text, std::string_view name) {
  std::vector<Setting> settings;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.find('\0') != std::string_view::npos) {
    throw ConfigError(fmt::format("{}: found a NUL byte, expected UTF-8 text (not UTF-16)", name));
  }
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t length = std::min(text.find_first_of("\r\n"), text.size());
    LineParser line(text.substr(0, length), fmt::format("{}:{}", name, number));
    if (!line.IsEmpty()) settings.push_back(line.Parse());
    const bool crlf = text.substr(length).starts_with("\r\n");
    text.remove_prefix(std::min(length + (crlf ? 2 : 1), text.size()));
  }
  return settings;
}

std::vector<Setting> ReadConfig(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw ConfigError(fmt::format("{}: found a folder, expected a configuration file", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw ConfigError(fmt::format("{}: cannot read the configuration file: {}", path, std::strerror(errno)));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return ParseConfig(text, path);
}

std::vector<Setting> ParseArguments(std::span<const std::string> arguments) {
  std::vector<Setting> settings;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size()) {
      throw ConfigError(fmt::format("argument '{}': expected key=value", argument));
    }
    settings.push_back(
        {argument.substr(0, equals), argument.substr(equals + 1), fmt::format("argument '{}'", argument)});
  }
  return settings;
}

std::vector<Setting> ReadSettings(std::span<const std::string> arguments) {
  std::vector<Setting> settings;
  if (!arguments.empty() && arguments.front().find('=') == std::string::npos) {
    settings = ReadConfig(arguments.front());
    arguments = arguments.subspan(1);
  }
  const std::vector<Setting> overriding = ParseArguments(arguments);
  settings.insert(settings.end(), overriding.begin(), overriding.end());
  return settings;
}

}  // namespace warren::xgb_train
