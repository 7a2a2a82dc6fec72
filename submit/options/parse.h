// Parsing of the command line.
#pragma once

#include <string>
#include <vector>

#include "submit/options/options.h"
#include "submit/options/table.h"

namespace warren::submit {

/// Parses the command line, without the program's name. Options may be written in all ways that
/// cli/arguments.h describes. They end at the first word that is not an option; everything from there on (or
/// after "--") is the command, word for word. The environment supplies DMLC_SUBMIT_CLUSTER and the values for
/// `--env KEY`. Throws UsageError if the command line is invalid.
Options ParseOptions(const OptionTable& table, const std::vector<std::string>& arguments);

}  // namespace warren::submit
