// Where files that belong to this library are found.
#pragma once

#include <string>
#include <vector>

namespace warren {

/// Folders that may contain plugins: the folder of librabit (or of the program that it is linked into), lib/
/// next to a program's bin/, and, for installed plugins, warren/ in each of these.
std::vector<std::string> LibraryDirectories();

}  // namespace warren
