// --detach: the job continues in a separate process, which outlives the terminal and the caller.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "posix/descriptor.h"

namespace warren::submit {

/// The connection of the new process to the process that started it.
class Detached {
 public:
  /// `starter`: the pipe to the process that is waiting for Begin.
  explicit Detached(posix::Descriptor starter) : starter_(std::move(starter)) {}

  /// Must be called once, when the job has begun. From then on, the output of this process goes to the file
  /// `log`, which also receives everything written so far. The starting process prints `id` and exits. Throws
  /// std::runtime_error if the file cannot be written or the starting process no longer exists.
  void Begin(const std::string& id, const std::string& log);

 private:
  posix::Descriptor starter_;
};

/// Continues in a new process: calls `go_on` there, in a new session, without a terminal and without the
/// caller's descriptors, and returns the result of `go_on` there. Must be called before any thread is
/// started. In the calling process, waits until the new process has called Begin or has ended, copies its
/// output so far to standard error, and returns the exit code: 0 after Begin, otherwise the exit code of the
/// new process, or 128 + the signal that killed it. Throws std::runtime_error if the new process, the pipe to
/// it, or the temporary file for its output cannot be created.
int Detach(const std::function<int(Detached&)>& go_on);

}  // namespace warren::submit
