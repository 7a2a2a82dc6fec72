// Shell completion scripts for dmlc-submit's command line, generated from the option table. They complete the
// names of options, possible values, files and folders, and the job's command, for which they use the
// completion that the shell has for that command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "submit/options/options.h"
#include "submit/options/table.h"
#include "submit/options/value_hint.h"

namespace warren::submit {

/// The script that --completion prints for this shell.
std::string CompletionScript(const OptionTable& table, Shell shell);

// --- shared by the files of the shells ---------------------------------------------------------------------

/// All names of an option, with their dashes.
std::vector<std::string_view> NamesOf(const Option& option);
/// Replaces @JOINED@ in a script with patterns for a one-letter option joined to its value, such as -n?*, and
/// @NAMES_LIKE_JOINED@ with the single-dash names that match these patterns, such as -np. Patterns and names
/// are joined with `between`; each is enclosed in `quotes`.
std::string WithJoinedValues(const OptionTable& table, std::string_view script, std::string_view between,
                             std::string_view quotes);
/// The first sentence of the option's help, or its part before a colon, without the period or colon.
std::string ShortHelp(const Option& option);

std::string BashCompletion(const OptionTable& table);
std::string ZshCompletion(const OptionTable& table);
std::string FishCompletion(const OptionTable& table);

}  // namespace warren::submit
