#include "data/uri.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "data/error.h"
#include "data/text/format.h"
#include "data/text/option_value.h"
#include "data/text/registry.h"

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

/// Returns the position of the '?' that begins the options; npos if there are no options. A '?' that is not
/// followed by key= is a wildcard of the path.
std::size_t FindOptions(std::string_view text) {
  for (std::size_t at = text.find('?'); at != std::string_view::npos; at = text.find('?', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    const std::size_t key_end = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    if (key_end != 0 && key_end != std::string_view::npos && rest[key_end] == '=') return at;
  }
  return std::string_view::npos;
}

struct Argument {
  std::string_view key;
  std::string_view value;
};

/// Options being parsed.
struct Draft {
  TextOptions options;
  std::optional<int> part;
  std::optional<int> parts;
};

/// An option that all formats have.
struct CommonOption {
  std::string_view key;
  void (*set)(Draft& draft, std::string_view key, std::string_view value);
};

constexpr std::string_view kFormatKey = "format";

void SetFormat(Draft& draft, std::string_view key, std::string_view value) {
  std::map<std::string_view, Format> formats;
  for (const TextFormat* const format : TextFormats())
    formats.emplace(format->name, static_cast<Format>(formats.size()));
  draft.options.format = OneOf(key, value, formats);
}

constexpr CommonOption kCommonOptions[] = {
    {kFormatKey, SetFormat},
    {"indexing_mode",
     [](Draft& draft, std::string_view key, std::string_view value) {
       draft.options.indexing = static_cast<Indexing>(WholeNumber(key, value, -1, 1));
     }},
    {"part",
     [](Draft& draft, std::string_view key, std::string_view value) {
       draft.part = WholeNumber(key, value, 0, std::numeric_limits<int>::max());
     }},
    {"n",
     [](Draft& draft, std::string_view key, std::string_view value) {
       draft.parts = WholeNumber(key, value, 1, std::numeric_limits<int>::max());
     }},
    {"shuffle",
     [](Draft& draft, std::string_view key, std::string_view value) {
       draft.options.seed =
           WholeNumber<std::uint64_t>(key, value, 0, std::numeric_limits<std::uint64_t>::max());
     }},
    {"bad_rows",
     [](Draft& draft, std::string_view key, std::string_view value) {
       draft.options.skip_bad_rows = OneOf<bool>(key, value, {{"strict", false}, {"skip", true}});
     }},
};

/// Returns the option of the chosen format, or else of the first format that has it; null if none has it.
const FormatOption* FindFormatOption(Format chosen, std::string_view key) {
  const auto find = [key](const TextFormat& format) -> const FormatOption* {
    const auto found = std::find_if(format.options.begin(), format.options.end(),
                                    [key](const FormatOption& option) { return option.key == key; });
    return found != format.options.end() ? &*found : nullptr;
  };
  if (const FormatOption* const option = find(TextFormatOf(chosen))) return option;
  for (const TextFormat* const format : TextFormats()) {
    if (const FormatOption* const option = find(*format)) return option;
  }
  return nullptr;
}

Argument SplitArgument(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::vector<std::string_view> keys = DataUriKeys();
  const Argument argument{text.substr(0, equals), equals < text.size() ? text.substr(equals + 1) : ""};
  if (equals == std::string_view::npos || std::find(keys.begin(), keys.end(), argument.key) == keys.end()) {
    throw DataError(fmt::format("'{}' is not an option of a data set; expected key=value with one of {}",
                                text, fmt::join(keys, ", ")));
  }
  return argument;
}

void Set(Draft& draft, const Argument& argument) {
  const auto& [key, value] = argument;
  for (const CommonOption& option : kCommonOptions) {
    if (option.key == key) return option.set(draft, key, value);
  }
  const FormatOption* const option = FindFormatOption(draft.options.format, key);
  if (option != nullptr) option->set(draft.options, key, value);
}

/// Throws DataError for an option that only other formats have: its value would have no effect.
void RequireOptionsOfFormat(Format format, const std::vector<Argument>& arguments) {
  const auto has = [](const auto& options, std::string_view key) {
    return std::any_of(std::begin(options), std::end(options), [&](const auto& o) { return o.key == key; });
  };
  for (const Argument& argument : arguments) {
    if (has(kCommonOptions, argument.key) || has(TextFormatOf(format).options, argument.key)) continue;
    std::vector<std::string_view> owners;
    for (const TextFormat* const other : TextFormats()) {
      if (has(other->options, argument.key)) owners.push_back(other->name);
    }
    throw DataError(fmt::format("{}={}: format={} has no such option; expected format={}", argument.key,
                                argument.value, TextFormatOf(format).name, fmt::join(owners, " or ")));
  }
}

TextOptions ParseOptions(std::string_view text) {
  std::vector<Argument> arguments;
  for (const std::string_view argument : Split(text, '&')) arguments.push_back(SplitArgument(argument));
  Draft draft;
  // The format is set first, wherever it is written, because formats can define the same key differently.
  for (const Argument& argument : arguments) {
    if (argument.key == kFormatKey) Set(draft, argument);
  }
  for (const Argument& argument : arguments) Set(draft, argument);
  RequireOptionsOfFormat(draft.options.format, arguments);

  if (draft.part.has_value() != draft.parts.has_value()) {
    throw DataError("part=k and n=N go together: part k of N, k from 0 to N - 1");
  }
  if (draft.part) {
    if (*draft.part >= *draft.parts)
      throw DataError(fmt::format("part={}&n={}: parts count from 0", *draft.part, *draft.parts));
    draft.options.share = Share{*draft.part, *draft.parts};
  }
  for (const TextFormat* const format : TextFormats()) {
    if (format->check != nullptr) format->check(draft.options);
  }
  if (const TextFormat& format = TextFormatOf(draft.options.format);
      format.fixed_columns && draft.options.indexing != Indexing::kZero) {
    throw DataError(fmt::format("indexing_mode={}: {} has no indices; leave indexing_mode out",
                                static_cast<int>(draft.options.indexing), format.name));
  }
  return draft.options;
}

}  // namespace

std::vector<std::string_view> DataUriKeys() {
  std::set<std::string_view> keys;
  for (const CommonOption& option : kCommonOptions) keys.insert(option.key);
  for (const TextFormat* const format : TextFormats()) {
    for (const FormatOption& option : format->options) keys.insert(option.key);
  }
  return {keys.begin(), keys.end()};
}

DataUri ParseDataUri(std::string_view text) {
  try {
    DataUri uri;
    const std::size_t hash = text.find('#');
    if (hash != std::string_view::npos) {
      uri.cache = text.substr(hash + 1);
      if (uri.cache.empty()) throw DataError("expected the name of a cache after '#'");
    }
    const std::string_view before_cache = text.substr(0, hash);
    const std::size_t question = FindOptions(before_cache);
    uri.options = ParseOptions(question != std::string_view::npos ? before_cache.substr(question + 1) : "");
    for (const std::string_view path : Split(before_cache.substr(0, question), ';'))
      uri.paths.emplace_back(path);
    if (uri.paths.empty()) throw DataError("names no file");
    return uri;
  } catch (const DataError& error) {
    throw DataError(fmt::format("'{}': {}", text, error.what()));
  }
}

DataUri DataUriOf(std::vector<std::string> paths, std::string_view options) {
  if (paths.empty()) throw DataError("no file is named");
  return {
      .paths = std::move(paths), .paths_are = Paths::kExact, .options = ParseOptions(options), .cache = {}};
}

}  // namespace warren::data
