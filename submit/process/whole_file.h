// Reads and writes whole files.
#pragma once

#include <string>

namespace warren::submit {

/// Returns the content of a file. Throws std::runtime_error ("cannot read '<path>': <why>") if the file
/// cannot be read, for example because it is a folder.
std::string ReadWholeFile(const std::string& path);

/// Writes a file that only this user can read, since commands and environments may contain secrets. `flags`
/// are those of open(2): with O_TRUNC, the content of an existing file is replaced; with O_EXCL, an existing
/// file is an error, and no part of a new one remains on failure. Throws std::runtime_error ("cannot write
/// '<path>': <why>") on failure.
void WritePrivateFile(const std::string& path, const std::string& content, int flags);

}  // namespace warren::submit
