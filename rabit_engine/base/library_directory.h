// Where files lie that belong to this library.
#pragma once

#include <string>
#include <vector>

namespace warren {

/// The folder of librabit (or of the program that took it in), and lib/ beside a program's bin/.
std::vector<std::string> LibraryDirectories();

}  // namespace warren
