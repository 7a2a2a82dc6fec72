// Runs a short command, e.g. `ssh -G` or `mpirun --version`, and returns its output. Blocks, so it is meant
// for the time before a job begins.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace warren::submit {

struct Captured {
  int exit_code = 127;
  std::string out;       ///< standard output; at most a little more than kMostCaptured
  bool is_late = false;  ///< whether the command exceeded the time limit and was killed
};

/// The maximum number of bytes of output; a command that prints more is killed.
inline constexpr std::size_t kMostCaptured = std::size_t{64} << 20;

/// Runs a command, which is looked up on `path` (a value of PATH), with /dev/null as standard input and
/// standard error. Returns no output if the command cannot be started (exit code 127) or is killed because it
/// takes longer than `patience`. Throws std::runtime_error if this process is out of descriptors, memory or
/// processes.
Captured Capture(const std::vector<std::string>& words, const std::string& path,
                 std::chrono::milliseconds patience = std::chrono::seconds{10});

}  // namespace warren::submit
