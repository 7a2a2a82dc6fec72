// The registry of text formats. Each built-in format is a file in this folder and an entry here.
#include "data/text/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string_view>

#include "data/error.h"

namespace warren::data {

extern const TextFormat kLibSvmFormat;
extern const TextFormat kLibFmFormat;
extern const TextFormat kCsvFormat;

namespace {

/// The built-in formats, in the order of the Format values.
const TextFormat* const kFormatsOfTheTree[] = {&kLibSvmFormat, &kLibFmFormat, &kCsvFormat};

void RequireComplete(const TextFormat& format) {
  const auto require = [&format](bool there, std::string_view what) {
    if (there) return;
    throw DataError(
        fmt::format("text format '{}': has no {}; see TextFormat in data/text/format.h", format.name, what));
  };
  require(!format.name.empty(), "name");
  require(format.parser != nullptr, "parser");
  require(!format.row_ends.empty(), "row ends");
  for (const FormatOption& option : format.options) {
    require(!option.key.empty(), "key of an option");
    require(option.set != nullptr && option.get != nullptr, fmt::format("set or get of '{}'", option.key));
  }
}

class Registry {
 public:
  Registry() {
    for (const TextFormat* const format : kFormatsOfTheTree) Add(*format);
  }

  Format Add(const TextFormat& format) {
    RequireComplete(format);
    const std::lock_guard lock(mutex_);
    const bool taken = std::any_of(formats_.begin(), formats_.end(), [&](const TextFormat* registered) {
      return registered->name == format.name;
    });
    if (taken)
      throw DataError(fmt::format("text format '{}': a format of that name already exists", format.name));
    if (formats_.size() > std::numeric_limits<std::uint8_t>::max()) {
      throw DataError(fmt::format("text format '{}': {} are registered already, which is the maximum",
                                  format.name, formats_.size()));
    }
    formats_.push_back(&format);
    return static_cast<Format>(formats_.size() - 1);
  }

  std::vector<const TextFormat*> formats() const {
    const std::lock_guard lock(mutex_);
    return formats_;
  }
  /// Throws DataError if there is no such format.
  const TextFormat& at(Format format) const {
    const auto place = static_cast<std::size_t>(format);
    const std::lock_guard lock(mutex_);
    if (place < formats_.size()) return *formats_[place];
    throw DataError(fmt::format("text format number {}: {} are registered", place, formats_.size()));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<const TextFormat*> formats_;
};

Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

}  // namespace

Format RegisterTextFormat(const TextFormat& format) {
  return TheRegistry().Add(format);
}

std::vector<const TextFormat*> TextFormats() {
  return TheRegistry().formats();
}

const TextFormat& TextFormatOf(Format format) {
  return TheRegistry().at(format);
}

std::string_view Name(Format format) {
  return TextFormatOf(format).name;
}

RowRules RowRulesOf(const TextOptions& options) {
  const TextFormat& format = TextFormatOf(options.format);
  RowRules rules;
  rules.row_ends = format.row_ends;
  rules.comment = format.comment;
  rules.header = format.header != nullptr && format.header(options);
  if (format.queries != nullptr) {
    rules.queries = [&format, options](std::string_view first_row) {
      return format.queries(options, first_row);
    };
  }
  return rules;
}

std::string DescribeFormat(const TextOptions& options) {
  const TextFormat& format = TextFormatOf(options.format);
  std::string text = fmt::format("{}, indexing_mode {}", format.name, static_cast<int>(options.indexing));
  for (const FormatOption& option : format.options)
    text += fmt::format(", {} {}", option.key, option.get(options));
  return text;
}

}  // namespace warren::data
