// After a job that no worker has joined: whether its programs were meant to train together. That is a guess,
// made by reading what the command runs; docs/how-to/submit.md has the rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace warren::submit {

/// A library whose programs join jobs at the tracker, and the file that uses it.
struct LibraryUse {
  std::string file;     ///< as the command names it; "the command" for program text among its words
  std::string library;  ///< "xgboost", "lightgbm", "rabit" or "warren"

  bool operator==(const LibraryUse&) const = default;
};

/// Looks for such a library in what these words run: programs, scripts of Python and of a shell, code among
/// the words, and the Python modules beside a script that it imports. Never names what the command only
/// reads. `path`: the value of PATH. nullopt: none was found, or the program finds its peers by other means,
/// such as torch.distributed or MPI. Never throws for files that cannot be read.
std::optional<LibraryUse> FindLibraryUse(const std::vector<std::string>& command, const std::string& path);

/// What to tell the user of a job of so many workers that none has joined; empty: nothing.
std::string SeparateProgramsStory(int num_workers, const std::vector<std::string>& command,
                                  const std::string& path);

}  // namespace warren::submit
