// One process of a job on this machine: how it is started, and how it ended.
//
// Every process leads a process group of its own, so that it can be stopped with everything it has started.
// It reads from /dev/null or a pipe, writes to two pipes, inherits no other descriptor and no signal
// settings, and is sent SIGTERM by the kernel should dmlc-submit die. No shell is involved: arguments and
// environment arrive byte for byte.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "posix/descriptor.h"
#include "submit/process/binding.h"

namespace warren::submit {

struct ExitStatus {
  int code = 0;    ///< as given to exit()
  int signal = 0;  ///< the signal that killed it; 0: it exited by itself
  bool core_dumped = false;
  std::string story = {};  ///< said instead, of one that did not end by itself: "could not be started on n1"

  bool ok() const { return code == 0 && signal == 0; }
  /// As a shell reports it: the code, or 128 + the signal.
  int ShellCode() const { return signal != 0 ? 128 + signal : code; }
  /// Somebody else ended it, a person, the kernel or a queue: killed by SIGKILL, SIGTERM, SIGHUP, SIGINT or
  /// SIGXCPU, and not by a signal of its own fault.
  bool was_taken_away() const;
  /// "exited with code 3", "was killed by signal 9 (SIGKILL)".
  std::string Describe() const;
};

/// What a shell's `$?` says: above 128 the process was killed by a signal, or says so.
ExitStatus FromShellCode(int code);

/// "SIGKILL"; "signal 34" for one without a name.
std::string SignalName(int signal);

/// The process could not be started; `exit_code` is what a shell would report.
class StartError : public std::runtime_error {
 public:
  StartError(const std::string& message, int code) : std::runtime_error(message), exit_code(code) {}
  int exit_code;
};

struct SpawnRequest {
  std::string file;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< all of it: "NAME=value"
  bool reads_input = false;              ///< from a pipe, in place of /dev/null
  CoreList cores = {};                   ///< it is bound to; empty: to those of dmlc-submit
};

struct SpawnedProcess {
  pid_t pid = -1;         ///< also the number of its process group
  posix::Descriptor out;  ///< the ends to read its standard output and standard error from
  posix::Descriptor err;
  posix::Descriptor in;  ///< the end to write its standard input to, if it was asked for
};

class Spawner {
 public:
  Spawner();
  /// Starts a process; returns when its program runs. On the way its process group is announced to
  /// `watchdog` (see watchdog.h). Throws StartError.
  SpawnedProcess Spawn(const SpawnRequest& request, int watchdog) const;

 private:
  posix::Descriptor null_;
  rlimit files_{};  ///< the limit dmlc-submit was started with, which the processes get back
  bool ignores_hangup_ = false;

  friend void RaiseFileLimit(std::size_t needed, const Spawner& spawner);
};

/// Makes sure that `needed` descriptors can be open at once, as far as the hard limit goes. Throws
/// std::runtime_error when that is not far enough. The spawner must exist: it keeps the old limit.
void RaiseFileLimit(std::size_t needed, const Spawner& spawner);

/// How the process ended, or nothing while it runs. It stays a zombie, so that its number is not given to
/// another process, until Reap.
std::optional<ExitStatus> PeekExit(pid_t pid);
void Reap(pid_t pid);

/// Sends a signal to a process group; one that is gone already is no error.
void SignalGroup(pid_t group, int signal);
/// Asks a process group to end, also when it is stopped.
void TerminateGroup(pid_t group);

}  // namespace warren::submit
