// Parsing of the command line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "submit/options/options.h"
#include "submit/options/table.h"

namespace warren::submit {

/// Parses the command line, without the program's name. Options may be written in all ways that
/// cli/arguments.h describes. They end at the first word that is not an option; everything from there on (or
/// after "--") is the command, word for word. The environment supplies DMLC_SUBMIT_CLUSTER and the values for
/// `--env KEY`. `read_file` returns the content of the job file that --job names (job_file.h); it is called
/// only if the job file is needed. Throws UsageError if the command line or the job file is invalid, or if
/// `read_file` throws a std::runtime_error.
Options ParseOptions(const OptionTable& table, const std::vector<std::string>& arguments,
                     const std::function<std::string(const std::string& path)>& read_file);

}  // namespace warren::submit
