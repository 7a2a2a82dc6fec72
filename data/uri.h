// What to read and how, as XGBoost's users write it:
//
//     path[;path...][?key=value[&key=value...]][#cache]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/csv.h"

namespace warren::data {

enum class Format : std::uint8_t { kLibsvm, kLibfm, kCsv };

std::string_view Name(Format format);

/// Part `index` of `count`: parts have about equal bytes, no row in common, and all rows together.
struct Share {
  int index = 0;
  int count = 1;
};

/// How a text counts its first column.
enum class Indexing : std::int8_t {
  kDetect = -1,  ///< from 1 if no entry of the whole data set has index 0, else from 0
  kZero = 0,
  kOne = 1,
};

/// What the text looks like, and which of it to read.
struct TextOptions {
  Format format = Format::kLibsvm;
  Indexing indexing = Indexing::kZero;
  CsvOptions csv;
  bool csv_header = false;     ///< the first line of each file is none of the rows
  std::optional<Share> share;  ///< none: the caller's
  std::optional<std::uint64_t>
      seed;  ///< chunks of rows come in an order that it decides; none: in that of the files
  bool skip_bad_rows = false;  ///< count and report them instead of stopping at the first
};

/// format=libsvm|libfm|csv, indexing_mode=0|1|-1, label_column, weight_column, qid_column, delimiter,
/// header=0|1 (csv), part and n (together), shuffle=SEED, bad_rows=strict|skip.
struct DataUri {
  std::vector<std::string> paths;
  TextOptions options;
  std::string cache;  ///< prefix of the cache's name; empty: no cache
};

/// Throws DataError for anything else, with what is known.
DataUri ParseDataUri(std::string_view uri);

}  // namespace warren::data
