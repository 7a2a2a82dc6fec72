// The watchdog: a tiny process that outlives dmlc-submit to clean up after it.
//
// When dmlc-submit dies, the kernel signals the workers, but not the processes that they have started (such
// as a shell script's Python), and a worker may ignore the signal. Therefore the watchdog is forked before
// any worker, in a new session, which no Ctrl-C reaches. Through a pipe, it is told which process groups
// begin and end. The other end of the pipe closes when dmlc-submit is gone, for whatever reason. The watchdog
// then sends the remaining groups SIGTERM and, after a grace period, SIGKILL, and runs the cleanup command if
// one is set, for example to remove the job from a queue. The watchdog holds no other descriptor open and has
// another name, so that killing everything called dmlc-submit spares it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "posix/descriptor.h"

namespace warren::submit {

/// The time between SIGTERM and SIGKILL. It is short enough that all processes are gone within a second.
inline constexpr std::chrono::milliseconds kStopGrace{600};

/// Tells the watchdog at the other end of `pipe` that `group` exists. Safe between fork and exec.
void AnnounceGroup(int pipe, pid_t group);
/// Tells the watchdog to forget `group`. Must be called before the group's number can be reused.
void WithdrawGroup(int pipe, pid_t group);

class Watchdog {
 public:
  /// Forks the watchdog. Throws std::runtime_error if that fails.
  Watchdog();
  /// Closes the pipe, after which the watchdog ends any groups that are left and exits. Waits for that, for
  /// about two seconds at most.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The write end of the watchdog's pipe.
  int pipe() const { return pipe_.get(); }
  pid_t pid() const { return pid_; }
  /// Replaces the shell commands that the watchdog runs for cleanup. Returns false and changes nothing if
  /// they are longer than about 4,000 bytes.
  bool SetCleanupCommand(const std::string& commands);
  /// If the watchdog was killed, starts another one and passes it `groups` and the cleanup commands. Throws
  /// std::runtime_error if it cannot be started.
  void ReplaceIfDead(const std::vector<pid_t>& groups);

 private:
  void Start();
  void SendCleanupCommand() const;

  std::string cleanup_command_;
  posix::Descriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace warren::submit
