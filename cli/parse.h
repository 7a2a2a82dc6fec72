// Parses command lines for programs that define their options with CLI11, in all forms that cli/arguments.h
// describes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace warren::cli {

/// Parses the command line with `app`, after rewriting each option in the form that CLI11 accepts. After the
/// name of a subcommand, the options of the subcommand are accepted, too. `other_names` maps names that CLI11
/// does not accept to the names they stand for: {"-np", "--num-workers"}. Throws UsageError, and what
/// App::parse throws.
void Parse(CLI::App& app, int argc, const char* const* argv,
           const std::vector<std::pair<std::string, std::string>>& other_names = {});

/// Like Parse, but handles the exceptions: prints errors on standard error, and the texts of --help and
/// --version. Returns the exit code if the program should end (2 for an invalid command line, 0 after --help
/// and --version), otherwise -1.
int ParseOrExplain(CLI::App& app, const std::string& program, int argc, const char* const* argv,
                   const std::vector<std::pair<std::string, std::string>>& other_names = {});

}  // namespace warren::cli
