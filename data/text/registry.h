// The registry of text formats. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "data/source/row_rules.h"
#include "data/text/format.h"
#include "data/text/options.h"

namespace warren::data {

/// Registers a format at run time, for this process; `format` and everything it points to must stay valid
/// until the process ends. Returns its value for TextOptions::format. Throws DataError if the format is
/// incomplete, its name is taken, or 256 formats are registered already.
Format RegisterTextFormat(const TextFormat& format);

/// Returns all formats, in the order of their Format values.
std::vector<const TextFormat*> TextFormats();

/// Throws DataError if the format is not registered.
const TextFormat& TextFormatOf(Format format);

/// Returns the rules for splitting text with these options into rows.
RowRules RowRulesOf(const TextOptions& options);

/// Returns "NAME, indexing_mode N" and the format's own options: everything that determines the meaning of a
/// row of text.
std::string DescribeFormat(const TextOptions& options);

}  // namespace warren::data
