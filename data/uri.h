// Data set names: paths, options and a cache, in the syntax that XGBoost uses:
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

/// A data set name after parsing. The options are format=NAME (libsvm, libfm, csv, or another registered
/// format), indexing_mode=0|1|-1, part and n (together), shuffle=SEED, bad_rows=strict|skip, and the formats'
/// own options: for CSV label_column, weight_column, qid_column, delimiter, header=0|1. An option of another
/// format is an error.
struct DataUri {
  std::vector<std::string> paths;
  Paths paths_are = Paths::kWritten;
  TextOptions options;
  std::string cache;  ///< prefix of the cache's path (CachePath in cache/pages.h); empty: no cache
};

/// Throws DataError if `uri` is malformed; for an unknown option, the message lists the known ones.
DataUri ParseDataUri(std::string_view uri);

/// Makes a DataUri from exact names of files and folders, in which no character is special. `options` is
/// key=value[&key=value...] or empty. Throws DataError if there is no path or `options` is malformed.
DataUri DataUriOf(std::vector<std::string> paths, std::string_view options);

/// Returns the keys of all options, for messages and help.
std::vector<std::string_view> DataUriKeys();

}  // namespace warren::data
