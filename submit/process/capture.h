// Runs a short command before the job begins and returns its output, e.g. `ssh -G` or `mpirun --version`.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace warren::submit {

struct Captured {
  int exit_code = 127;
  std::string out;       ///< standard output; at most a little more than kMostCaptured
  bool is_late = false;  ///< it took longer than the caller's patience, and was killed
};

/// A command that prints more is killed.
inline constexpr std::size_t kMostCaptured = std::size_t{64} << 20;

/// Runs a command, looked up on `path` (a value of PATH), without standard input and standard error. Returns
/// no output if it cannot be started or takes longer than `patience`. Throws std::runtime_error if this
/// process is out of descriptors, memory or processes.
Captured Capture(const std::vector<std::string>& words, const std::string& path,
                 std::chrono::milliseconds patience = std::chrono::seconds{10});

}  // namespace warren::submit
