// Starts a process of a job on this machine, and describes how a process ended.
//
// Every process leads its own process group, so that it can be stopped with everything it has started. It
// reads from /dev/null or a pipe, writes to two pipes, inherits no other descriptors and no signal settings
// except an ignored SIGHUP, and gets SIGTERM from the kernel if dmlc-submit dies. No shell is involved:
// arguments and environment arrive byte for byte.
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
  int signal = 0;  ///< the signal that killed it; 0 if it exited normally
  bool core_dumped = false;
  std::string story = {};   ///< if set, replaces the description: "could not be started on n1"
  bool host_lost = false;   ///< its host could not be reached or was lost
  bool place_lost = false;  ///< no process can be started in its place

  bool ok() const { return code == 0 && signal == 0; }
  /// The status as a shell reports it: the code, or 128 + the signal.
  int ShellCode() const { return signal != 0 ? 128 + signal : code; }
  /// Whether a person, the kernel or a queue ended the process, rather than an error in the process: true for
  /// SIGKILL, SIGTERM, SIGHUP, SIGINT and SIGXCPU.
  bool was_taken_away() const;
  /// "exited with code 3", "was killed by signal 9 (SIGKILL)".
  std::string Describe() const;
};

/// Converts a shell's `$?` to a status: 129 to 159 mean that the process was killed by a signal.
ExitStatus FromShellCode(int code);

/// The name of a signal: "SIGKILL", or "signal 34" if it has none.
std::string SignalName(int signal);

/// The process could not be started; `exit_code` is the code that a shell would return.
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
  posix::Descriptor out;  ///< read ends of its standard output and standard error
  posix::Descriptor err;
  posix::Descriptor in;  ///< write end of its standard input, if requested
};

class Spawner {
 public:
  /// Throws StartError if /dev/null cannot be opened.
  Spawner();
  /// Starts a process and returns once its program is running. Its process group is first announced to
  /// `watchdog` (see watchdog.h). Throws StartError.
  SpawnedProcess Spawn(const SpawnRequest& request, int watchdog) const;

 private:
  posix::Descriptor null_;
  rlimit files_{};  ///< dmlc-submit's original limit, restored for the processes
  bool ignores_hangup_ = false;

  friend void RaiseFileLimit(std::size_t needed, const Spawner& spawner);
};

/// Raises the soft limit on descriptors so that `needed` can be open simultaneously. Throws
/// std::runtime_error if the hard limit is too low or the limit cannot be changed. `spawner` must have been
/// made before, since it keeps the original limit.
void RaiseFileLimit(std::size_t needed, const Spawner& spawner);

/// The exit status of a process; nullopt while it runs. The process stays a zombie until Reap, so that its
/// pid is not reused.
std::optional<ExitStatus> PeekExit(pid_t pid);
void Reap(pid_t pid);

/// Sends a signal to a process group; does nothing if the group is gone.
void SignalGroup(pid_t group, int signal);
/// Asks a process group to end, even if it is stopped.
void TerminateGroup(pid_t group);

}  // namespace warren::submit
