// Job files: the options and the command of a job as YAML (docs/how-to/job-files.md). A job file is parsed
// into the same list of options as a command line, using the same table. Does no I/O.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "submit/options/table.h"

namespace warren::submit {

/// The options and the command of a job, from a command line or a job file. GivenOption::form is the index of
/// the option's row in the table.
struct JobDescription {
  std::vector<cli::GivenOption> given;
  std::vector<std::string> command;
};

/// Parses the text of the job file with this name. Checks names and types; the values are checked when they
/// are stored. Throws UsageError ("job.yaml:3:1: ...": file, line, column) if the file is invalid.
JobDescription ReadJobFile(const OptionTable& table, const std::string& text, const std::string& name);

/// Combines a job file and a command line: an option given on the command line replaces all of the file's
/// values of that option, and a command replaces the file's command.
JobDescription Merged(JobDescription file, const JobDescription& line);

/// Returns the text of a job file that describes the same job: the options that were given, in table order,
/// each once, then the command. Options that job files may not contain are left out. Throws UsageError if a
/// value or a word of the command is not UTF-8.
std::string WriteJobFile(const OptionTable& table, const JobDescription& job);

}  // namespace warren::submit
