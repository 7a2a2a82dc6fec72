// How a process is doing, as its host's kernel says: a value.
#pragma once

#include <cstdint>

namespace warren::submit {

/// Of a worker and all that it has started.
struct ProcessSample {
  /// As in /proc/PID/stat, of the worker's own process: 'R' runs, 'S' sleeps, 'D' waits for a disk or a
  /// network file system, 'T' is stopped by a signal, 't' by a debugger, 'Z' has ended.
  char state = '?';
  double cpu_seconds = 0;  ///< used since it began; grows
  std::uint64_t resident_bytes = 0;
};

}  // namespace warren::submit
