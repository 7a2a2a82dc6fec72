// The options of a data set: its text format, the part to read, the order, and the handling of bad rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "data/share.h"
#include "data/text/csv.h"

namespace warren::data {

/// A text format: its index in the registry (registry.h). Only the built-in formats have names here;
/// ParseDataUri finds others by name ("format=NAME").
enum class Format : std::uint8_t { kLibsvm, kLibfm, kCsv };

/// Returns the NAME in "format=NAME". Throws DataError if the format is not registered.
std::string_view Name(Format format);

/// The numbering of the columns in the text.
enum class Indexing : std::int8_t {
  kDetect = -1,  ///< from 0 if any index or libfm field of the whole data set is 0, else from 1
  kZero = 0,
  kOne = 1,
};

/// The number of the first column in the text.
enum class FirstIndex : std::uint8_t { kZero = 0, kOne = 1 };

struct TextOptions {
  Format format = Format::kLibsvm;
  Indexing indexing = Indexing::kZero;
  CsvOptions csv;
  bool csv_header = false;     ///< whether the first line of each file is a header
  std::optional<Share> share;  ///< nullopt: the caller's share
  /// Seed of the order in which chunks are read; nullopt: file order.
  std::optional<std::uint64_t> seed;
  bool skip_bad_rows = false;  ///< skip, count and report bad rows instead of stopping at the first
  /// The options, by key, of formats that have no member here (FormatOption in format.h).
  std::map<std::string, std::string, std::less<>> of_format;
};

/// Returns the number that indices count from while the text is parsed. kDetect is resolved afterwards, see
/// agreement.h.
inline FirstIndex FirstIndexOf(const TextOptions& options) {
  return options.indexing == Indexing::kOne ? FirstIndex::kOne : FirstIndex::kZero;
}

}  // namespace warren::data
