// Reads whole files.
#pragma once

#include <string>

namespace warren::submit {

/// Returns the content of a file. Throws std::runtime_error ("cannot read '<path>': <why>") if the file
/// cannot be read or is a folder.
std::string ReadWholeFile(const std::string& path);

}  // namespace warren::submit
