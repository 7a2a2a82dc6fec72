// The state of a process, as the kernel of its host reports it.
#pragma once

#include <chrono>
#include <cstdint>

namespace warren::submit {

/// The interval between samples of a process, on all hosts; the actual interval is usually a little longer. A
/// sample also shows that the host is running and can be reached; a long gap suggests the opposite.
inline constexpr std::chrono::seconds kSampleInterval{5};

/// A sample of a worker and its descendant processes.
struct ProcessSample {
  /// As in /proc/PID/stat: 'R' running, 'S' sleeping, 'D' waiting for a disk or a network file system, 'T'
  /// stopped by a signal, 't' stopped by a debugger, 'Z' exited. If the worker has descendants, the first of
  /// these that applies: the state of any stopped process; 'D' if the worker itself is in that state; 'R' if
  /// any process is; 'D' if any process is; the worker's own state.
  char state = '?';
  /// CPU time used since the start, also by children that have exited. The value decreases when a process
  /// exits and its parent does not wait for it.
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;  ///< memory that several processes share counts once for each
};

}  // namespace warren::submit
