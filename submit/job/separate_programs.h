// Guesses, after a job that no worker has joined, whether its programs were meant to train together. Reads
// the programs that the command runs. docs/how-to/submit.md documents the rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace warren::submit {

/// A use of a library whose programs join jobs through the tracker.
struct LibraryUse {
  std::string file;     ///< path of the file that uses it, or "the command" for code given as an argument
  std::string library;  ///< "xgboost", "lightgbm", "horovod", "rabit" or "warren"

  bool operator==(const LibraryUse&) const = default;
};

/// Searches everything that the command runs for a use of the libraries that LibraryUse lists: programs,
/// Python and shell scripts, code given as an argument, and Python modules in the folder of a script that
/// imports them. Files that the command only reads are never reported. `path`: the value of PATH. Returns
/// nullopt if no library was found or the program finds its peers by other means, such as torch.distributed
/// or MPI. Does not throw for unreadable files.
std::optional<LibraryUse> FindLibraryUse(const std::vector<std::string>& command, const std::string& path);

/// The message for a job of `num_workers` workers, none of which has joined the job; empty if FindLibraryUse
/// finds nothing.
std::string SeparateProgramsStory(int num_workers, const std::vector<std::string>& command,
                                  const std::string& path);

}  // namespace warren::submit
