// A file's bytes, all of them.
#pragma once

#include <string>

namespace warren::submit {

/// Throws std::runtime_error, "cannot read '<path>': <why>", also for a folder.
std::string ReadWholeFile(const std::string& path);

}  // namespace warren::submit
