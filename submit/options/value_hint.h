// The kind of value that an option takes. Used for completion scripts, job files and the schema of job files.
#pragma once

#include <string>
#include <vector>

#include "submit/options/option.h"

namespace warren::submit {

enum class ValueKind { kFlag, kAny, kChoice, kFile, kDirectory, kProgram, kInteger, kNumber };

/// The possible values of an option.
struct ValueHint {
  ValueKind kind = ValueKind::kAny;
  std::vector<std::string> choices = {};  ///< with kChoice
  bool is_open = false;                   ///< with kChoice: other values are possible, too
};

ValueHint HintFor(const Option& option);
/// Whether the option's values form a map, whose entries may also be given one by one as KEY=VALUE.
bool TakesMap(const Option& option);

}  // namespace warren::submit
