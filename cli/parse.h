// For programs whose options CLI11 knows: takes them in all forms of cli/arguments.h.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace warren::cli {

/// Parses the command line by `app`, after each option has been written as CLI11 needs it. Behind the name of
/// a subcommand the options of that one are known, too. `other_names`: names that CLI11 does not take, and
/// what they stand for: {"-np", "--num-workers"}. Throws UsageError, and what App::parse throws.
void Parse(CLI::App& app, int argc, const char* const* argv,
           const std::vector<std::pair<std::string, std::string>>& other_names = {});

/// Parse, and what a main function does with its errors: says them on standard error with the program's
/// name. Returns the exit code if the program is to end with it, which is 2 for a wrong command line and 0
/// after --help and --version; -1: go on.
int ParseOrExplain(CLI::App& app, const std::string& program, int argc, const char* const* argv,
                   const std::vector<std::pair<std::string, std::string>>& other_names = {});

}  // namespace warren::cli
