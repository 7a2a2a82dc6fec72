// A short command whose answer is waited for, such as `ssh -G` or `mpirun --version`, before the job begins.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace warren::submit {

struct Captured {
  int exit_code = 127;
  std::string out;  ///< what it wrote to standard output
};

/// Runs the command, looked for on `path` (a value of PATH), without standard input or standard error. One
/// that cannot be started or takes longer than `patience` has said nothing. Throws std::runtime_error where
/// this process has no descriptor, memory or process left to start it with.
Captured Capture(const std::vector<std::string>& words, const std::string& path,
                 std::chrono::milliseconds patience = std::chrono::seconds{10});

}  // namespace warren::submit
