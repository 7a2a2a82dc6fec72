// The state of a process as its host's kernel reports it: a plain value.
#pragma once

#include <chrono>
#include <cstdint>

namespace warren::submit {

/// The interval between samples of a process, on all hosts; the actual interval is usually a little longer. A
/// sample also shows that the host is up and reachable; a long gap suggests that it may not be.
inline constexpr std::chrono::seconds kSampleInterval{5};

/// A sample of a worker and its descendant processes.
struct ProcessSample {
  /// As in /proc/PID/stat: 'R' running, 'S' sleeping, 'D' waiting for a disk or a network file system, 'T'
  /// stopped by a signal, 't' stopped by a debugger, 'Z' exited. For several processes, the first that
  /// applies: the state of any stopped process; 'D' if that is the worker's own state; 'R' if any process has
  /// that state; 'D' if any process has that state; the worker's own state.
  char state = '?';
  /// CPU time used since the start, including that of children that have exited. It decreases when a process
  /// exits and its parent does not wait for it.
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;  ///< memory shared by several of the processes counts once for each
};

}  // namespace warren::submit
