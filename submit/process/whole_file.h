// Reads whole files.
#pragma once

#include <string>

namespace warren::submit {

/// Returns the content of a file. Throws std::runtime_error, "cannot read '<path>': <why>", also for a
/// folder.
std::string ReadWholeFile(const std::string& path);

}  // namespace warren::submit
