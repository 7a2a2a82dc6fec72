// Starts a process of a job on this machine, and describes how a process ended.
//
// Every process leads a new process group, so that it can be stopped with everything that it has started. It
// reads from /dev/null or a pipe, writes to two pipes, and inherits no other descriptors and no signal
// settings except an ignored SIGHUP. On Linux, it gets SIGTERM from the kernel if dmlc-submit dies. No shell
// is involved: arguments and environment arrive byte for byte.
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
  int code = 0;    ///< the exit code
  int signal = 0;  ///< the signal that killed it; 0 if it exited normally
  bool core_dumped = false;
  std::string story = {};   ///< if not empty, replaces the description: "could not be started on n1"
  bool host_lost = false;   ///< whether its host could not be reached or was lost
  bool place_lost = false;  ///< whether no other process can be started in its place

  bool ok() const { return code == 0 && signal == 0; }
  /// The status as a shell reports it: the code, or 128 + the signal.
  int ShellCode() const { return signal != 0 ? 128 + signal : code; }
  /// Whether the signal is one with which a person, the kernel or a queue usually ends a process, rather than
  /// the result of an error in the process: SIGKILL, SIGTERM, SIGHUP, SIGINT or SIGXCPU.
  bool was_taken_away() const;
  /// The status for use in a sentence: "exited with code 3", "was killed by signal 9 (SIGKILL)".
  std::string Describe() const;
};

/// Converts a shell's `$?` to a status: 129 to 159 mean that a signal, from 1 to 31, killed the process.
ExitStatus FromShellCode(int code);

/// The name of a signal: "SIGKILL", or "signal 34" if it has none.
std::string SignalName(int signal);

/// Thrown if a process cannot be started. `exit_code`: 126 or 127, as a shell would return them, or 1 if the
/// cause is not the program.
class StartError : public std::runtime_error {
 public:
  StartError(const std::string& message, int code) : std::runtime_error(message), exit_code(code) {}
  int exit_code;
};

struct SpawnRequest {
  std::string file;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< complete, as "NAME=value"
  bool reads_input = false;              ///< whether standard input is a pipe instead of /dev/null
  /// Cores to bind the process to; if empty, the process keeps dmlc-submit's cores.
  CoreList cores = {};
};

struct SpawnedProcess {
  pid_t pid = -1;         ///< also its process group
  posix::Descriptor out;  ///< read end of its standard output
  posix::Descriptor err;  ///< read end of its standard error
  posix::Descriptor in;   ///< write end of its standard input, if requested
};

class Spawner {
 public:
  /// Throws StartError if /dev/null cannot be opened.
  Spawner();
  /// Starts a process, and returns once its program is running. Before that, its process group is announced
  /// to `watchdog` (AnnounceGroup in watchdog.h). Throws StartError.
  SpawnedProcess Spawn(const SpawnRequest& request, int watchdog) const;
  /// Raises the soft limit on descriptors of this process, but not of those that it starts, so that `needed`
  /// descriptors can be open at once. Throws std::runtime_error if the hard limit is too low or the limit
  /// cannot be changed.
  void RaiseFileLimit(std::size_t needed) const;

 private:
  posix::Descriptor null_;
  rlimit files_{};  ///< dmlc-submit's original limit, restored for the processes
  bool ignores_hangup_ = false;
};

/// The words as execve and posix_spawn take them: pointers into `words`, and a null pointer.
std::vector<char*> Pointers(const std::vector<std::string>& words);

/// The exit status of a process; nullopt while it runs. The process stays a zombie until Reap, so that its
/// pid is not reused.
std::optional<ExitStatus> PeekExit(pid_t pid);
void Reap(pid_t pid);

/// Sends a signal to a process group; does nothing if the group is gone.
void SignalGroup(pid_t group, int signal);
/// Sends SIGTERM to a process group, and SIGCONT, without which stopped processes would not react.
void TerminateGroup(pid_t group);

}  // namespace warren::submit
