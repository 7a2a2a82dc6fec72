// How a process is doing, as its host's kernel says: a value.
#pragma once

#include <chrono>
#include <cstdint>

namespace warren::submit {

/// How often processes are sampled, here and elsewhere; a little more between two samples is usual. A sample
/// that came says that the host lives and is reached, too; for how long there has been none, that it may not.
inline constexpr std::chrono::seconds kSampleInterval{5};

/// Of a worker and all that it has started.
struct ProcessSample {
  /// As in /proc/PID/stat: 'R' runs, 'S' sleeps, 'D' waits for a disk or a network file system, 'T' is
  /// stopped by a signal, 't' by a debugger, 'Z' has ended. Of several processes: whether any is stopped;
  /// else whether the worker's own, or the only busy one, is in 'D'; else whether any runs; else what the
  /// worker's own does.
  char state = '?';
  /// Used since it began, with what children that are gone have used. It falls when a process goes whose
  /// parent does not wait for it.
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;  ///< pages that several of them share count several times
};

}  // namespace warren::submit
