// The location of files that belong to this library.
#pragma once

#include <string>
#include <vector>

namespace warren {

/// Returns the folders that may contain plugins: the folder of librabit (or of the program that it is linked
/// into), lib/ next to a program's bin/, and, for installed plugins, warren/ in each of these two. Empty if
/// the location of librabit is unknown.
std::vector<std::string> LibraryDirectories();

}  // namespace warren
