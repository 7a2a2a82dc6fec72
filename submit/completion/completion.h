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
/// The first sentence of its help, without the full stop.
std::string ShortHelp(const Option& option);

std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace warren::submit
