// Scripts by which shells complete the command line of dmlc-submit, made of the table of options: names of
// options, what a value may be, files and folders, then the command and what its own completion says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "submit/options.h"

namespace warren::submit {

/// The script of --completion for this shell.
std::string CompletionScript(Shell shell);

// --- what the shells' files share --------------------------------------------------------------------------

enum class ValueKind { kFlag, kAny, kChoice, kFile, kDirectory, kProgram };

/// What the value of an option may be.
struct ValueHint {
  ValueKind kind = ValueKind::kAny;
  std::vector<std::string> choices = {};
};

ValueHint HintFor(const Option& option);
/// All names of an option, with their dashes.
std::vector<std::string_view> NamesOf(const Option& option);
/// A script with @JOINED@ and @NAMES_LIKE_JOINED@ replaced: patterns of words with a letter and its value,
/// such as -n?*, and the names of one dash that these fit, too, such as -np. `between` them, and each in
/// `quotes`.
std::string WithJoinedValues(std::string_view script, std::string_view between, std::string_view quotes);
/// The first sentence of its help, without the full stop.
std::string ShortHelp(const Option& option);

std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace warren::submit
