#include "data/uri.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <limits>
#include <map>

#include "data/error.h"

namespace warren::data {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    if (end != 0 && !text.empty()) parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The '?' that begins the options. One that is not followed by key= is a wildcard of the path.
std::size_t FindOptions(std::string_view text) {
  for (std::size_t at = text.find('?'); at != std::string_view::npos; at = text.find('?', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    const std::size_t key_end = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    if (key_end != 0 && key_end != std::string_view::npos && rest[key_end] == '=') return at;
  }
  return std::string_view::npos;
}

template <typename Number>
Number Whole(std::string_view key, std::string_view value, Number least, Number most) {
  Number number{};
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || stop != value.data() + value.size() || number < least || number > most) {
    throw DataError(fmt::format("{}={}: expected a whole number from {} to {}", key, value, least, most));
  }
  return number;
}

template <typename Value>
Value OneOf(std::string_view key, std::string_view value, const std::map<std::string_view, Value>& values) {
  if (const auto found = values.find(value); found != values.end()) return found->second;
  std::string known;
  for (const auto& [name, unused] : values) known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  throw DataError(fmt::format("{}={}: expected one of {}", key, value, known));
}

constexpr int kMostColumns = std::numeric_limits<int>::max() - 1;

class OptionsParser {
 public:
  void Take(std::string_view argument) {
    const std::size_t equals = argument.find('=');
    const std::string_view key = argument.substr(0, equals);
    const auto found = setters_.find(key);
    if (found == setters_.end() || equals == std::string_view::npos) {
      std::string known;
      for (const auto& [name, unused] : setters_)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
      throw DataError(
          fmt::format("'{}' is no option of a data set; expected key=value with one of {}", argument, known));
    }
    found->second(key, argument.substr(equals + 1));
  }

  TextOptions Finish() {
    if (part_.has_value() != parts_.has_value()) {
      throw DataError("part=k and n=N go together: part k of N, k from 0 to N - 1");
    }
    if (part_) {
      if (*part_ >= *parts_)
        throw DataError(fmt::format("part={}&n={}: parts count from 0", *part_, *parts_));
      options_.share = Share{*part_, *parts_};
    }
    RequireValid(options_.csv);
    return options_;
  }

 private:
  using Text = std::string_view;

  void SetColumn(int& column, Text key, Text value) { column = Whole(key, value, -1, kMostColumns); }

  TextOptions options_;
  std::optional<int> part_;
  std::optional<int> parts_;
  const std::map<Text, std::function<void(Text, Text)>> setters_{
      {"format",
       [this](Text key, Text value) {
         options_.format = OneOf<Format>(
             key, value, {{"libsvm", Format::kLibsvm}, {"libfm", Format::kLibfm}, {"csv", Format::kCsv}});
       }},
      {"indexing_mode",
       [this](Text key, Text value) { options_.indexing = static_cast<Indexing>(Whole(key, value, -1, 1)); }},
      {"label_column", [this](Text key, Text value) { SetColumn(options_.csv.label_column, key, value); }},
      {"weight_column", [this](Text key, Text value) { SetColumn(options_.csv.weight_column, key, value); }},
      {"qid_column", [this](Text key, Text value) { SetColumn(options_.csv.qid_column, key, value); }},
      {"delimiter",
       [this](Text key, Text value) {
         if (value == "\\t" || value == "tab") value = "\t";
         if (value.size() != 1) {
           throw DataError(fmt::format("{}={}: expected one character, or tab", key, value));
         }
         options_.csv.delimiter = value[0];
       }},
      {"header", [this](Text key, Text value) { options_.csv_header = Whole(key, value, 0, 1) != 0; }},
      {"part",
       [this](Text key, Text value) { part_ = Whole(key, value, 0, std::numeric_limits<int>::max()); }},
      {"n", [this](Text key, Text value) { parts_ = Whole(key, value, 1, std::numeric_limits<int>::max()); }},
      {"shuffle",
       [this](Text key, Text value) {
         options_.seed = Whole<std::uint64_t>(key, value, 0, std::numeric_limits<std::uint64_t>::max());
       }},
      {"bad_rows",
       [this](Text key, Text value) {
         options_.skip_bad_rows = OneOf<bool>(key, value, {{"strict", false}, {"skip", true}});
       }},
  };
};

}  // namespace

std::string_view Name(Format format) {
  switch (format) {
    case Format::kLibsvm:
      return "libsvm";
    case Format::kLibfm:
      return "libfm";
    case Format::kCsv:
      return "csv";
  }
  return "unknown";
}

DataUri ParseDataUri(std::string_view text) {
  try {
    DataUri uri;
    const std::size_t hash = text.find('#');
    if (hash != std::string_view::npos) {
      uri.cache = text.substr(hash + 1);
      if (uri.cache.empty()) throw DataError("expected the name of a cache behind '#'");
    }
    const std::string_view before_cache = text.substr(0, hash);
    const std::size_t question = FindOptions(before_cache);
    OptionsParser options;
    if (question != std::string_view::npos) {
      for (const std::string_view argument : Split(before_cache.substr(question + 1), '&'))
        options.Take(argument);
    }
    uri.options = options.Finish();
    for (const std::string_view path : Split(before_cache.substr(0, question), ';'))
      uri.paths.emplace_back(path);
    if (uri.paths.empty()) throw DataError("names no file");
    return uri;
  } catch (const DataError& error) {
    throw DataError(fmt::format("'{}': {}", text, error.what()));
  }
}

}  // namespace warren::data
