// What a text looks like, and which of it to read.
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

/// A text format: its place in the registry (registry.h). These are the first ones; others have no name here,
/// but are found by ParseDataUri ("format=NAME") and known to who registered them.
enum class Format : std::uint8_t { kLibsvm, kLibfm, kCsv };

/// As in "format=NAME". Throws DataError for one that is not registered.
std::string_view Name(Format format);

/// How a text counts its first column.
enum class Indexing : std::int8_t {
  kDetect = -1,  ///< from 1 if no entry of the whole data set has index 0, else from 0
  kZero = 0,
  kOne = 1,
};

/// How many is the first index of the text.
enum class FirstIndex : std::uint8_t { kZero = 0, kOne = 1 };

struct TextOptions {
  Format format = Format::kLibsvm;
  Indexing indexing = Indexing::kZero;
  CsvOptions csv;
  bool csv_header = false;     ///< the first line of each file is none of the rows
  std::optional<Share> share;  ///< none: the caller's
  std::optional<std::uint64_t>
      seed;  ///< chunks of rows come in an order that it decides; none: in that of the files
  bool skip_bad_rows = false;  ///< count and report them instead of stopping at the first
  /// Options of formats that have no member of their own here, by their keys (FormatOption in format.h).
  std::map<std::string, std::string, std::less<>> of_format;
};

/// What the indices of a text count from when it is parsed; kDetect is decided behind that, see agreement.h.
inline FirstIndex FirstIndexOf(const TextOptions& options) {
  return options.indexing == Indexing::kOne ? FirstIndex::kOne : FirstIndex::kZero;
}

}  // namespace warren::data
