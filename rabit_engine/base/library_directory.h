// Where files lie that belong to this library.
#pragma once

#include <string>
#include <vector>

namespace warren {

/// Where plugins may be: the folder of librabit (or of the program that took it in), lib/ beside a program's
/// bin/, and, where they are installed, warren/ in each of these.
std::vector<std::string> LibraryDirectories();

}  // namespace warren
