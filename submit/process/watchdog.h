// The watchdog: a tiny process that outlives dmlc-submit to clean up after it.
//
// The kernel sends the workers a signal when dmlc-submit dies, but not what the workers have started (a shell
// script's Python, for one), and a worker may ignore the signal. So before any worker the watchdog is forked,
// in a session of its own where no Ctrl-C reaches it. It reads from a pipe which process groups come and go.
// The pipe's other end closes when dmlc-submit is gone, however it went; the groups that are left then get
// SIGTERM and, after a grace time, SIGKILL, and a last command is run if one was left with it: what deletes
// the job elsewhere. It holds no other descriptor open, and goes by another name, so that killing everything
// called dmlc-submit spares it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "posix/descriptor.h"

namespace warren::submit {

/// How long processes have between SIGTERM and SIGKILL. Short enough that all are gone within a second.
inline constexpr std::chrono::milliseconds kStopGrace{600};

/// Tells the watchdog at the other end of `pipe` that `group` came to be. Safe between fork and exec.
void AnnounceGroup(int pipe, pid_t group);
/// Tells it that `group` is no concern any more; to be called while the number still belongs to it.
void WithdrawGroup(int pipe, pid_t group);

class Watchdog {
 public:
  /// Forks the watchdog. Throws std::runtime_error.
  Watchdog();
  /// Lets it go; when groups are left it ends them first.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The end of its pipe to write to.
  int pipe() const { return pipe_.get(); }
  pid_t pid() const { return pid_; }
  /// Leaves commands for a shell with it, in place of those before. False, and nothing is changed, when they
  /// have more than about 4,000 bytes.
  bool SetCleanupCommand(const std::string& commands);
  /// Starts another one, told about `groups`, should it have been killed.
  void ReplaceIfDead(const std::vector<pid_t>& groups);

 private:
  void Start();
  void SendCleanupCommand() const;

  std::string cleanup_command_;
  posix::Descriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace warren::submit
