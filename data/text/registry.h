// The text formats that data sets can have. Thread safe.
#pragma once

#include <string>
#include <vector>

#include "data/source/row_rules.h"
#include "data/text/format.h"
#include "data/text/options.h"

namespace warren::data {

/// Adds a format at run time, for this process; `format`, and what it points at, stays to its end. Returns
/// what TextOptions::format stands for it. Throws DataError when something is missing in it, or there is one
/// of that name.
Format RegisterTextFormat(const TextFormat& format);

/// In the order of their values of Format.
std::vector<const TextFormat*> TextFormats();

/// Throws DataError for one that is not registered.
const TextFormat& TextFormatOf(Format format);

/// How a text of these options is cut into rows.
RowRules RowRulesOf(const TextOptions& options);

/// "NAME, indexing_mode N", and the format's own options: all that decides what a row of text stands for.
std::string DescribeFormat(const TextOptions& options);

}  // namespace warren::data
