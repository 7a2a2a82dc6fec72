// What to read and how, as XGBoost's users write it:
//
//     path[;path...][?key=value[&key=value...]][#cache]
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/share.h"
#include "data/source/paths.h"
#include "data/text/options.h"

namespace warren::data {

/// format=NAME (libsvm, libfm, csv, or another that is registered), indexing_mode=0|1|-1, part and n
/// (together), shuffle=SEED, bad_rows=strict|skip, and those of the formats: for CSV label_column,
/// weight_column, qid_column, delimiter, header=0|1. The options of another format than the one asked for are
/// taken, and mean nothing.
struct DataUri {
  std::vector<std::string> paths;
  Paths paths_are = Paths::kWritten;
  TextOptions options;
  std::string cache;  ///< prefix of the cache's name; empty: no cache
};

/// Throws DataError for anything else, with what is known.
DataUri ParseDataUri(std::string_view uri);

/// Files and folders by their names, in which no character has a meaning. `options`:
/// key=value[&key=value...], or nothing. Throws DataError.
DataUri DataUriOf(std::vector<std::string> paths, std::string_view options);

/// All keys of options, for messages and help.
std::vector<std::string_view> DataUriKeys();

}  // namespace warren::data
