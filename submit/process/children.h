// The processes that dmlc-submit has started on this machine: workers themselves, or the ssh, mpirun, kubectl
// by which others are started elsewhere. All are watched, and none outlives dmlc-submit.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "submit/process/process.h"
#include "submit/process/sampler.h"
#include "submit/process/stream.h"
#include "submit/process/watchdog.h"

namespace warren::submit {

/// How long what a process leaves behind may go on writing its last output (as `> >(tee log)` in bash does)
/// before it is killed.
inline constexpr std::chrono::milliseconds kLeftoverGrace{150};
/// Descriptors that a process needs: three pipes, its log, its connection to the tracker.
inline constexpr std::size_t kDescriptorsPerProcess = 5;
/// Those that are needed anyway: dmlc-submit's own, those of a start, unauthenticated connections at the
/// tracker.
inline constexpr std::size_t kDescriptorsBeside = 128;

/// Called from the io_context, never from within Start.
struct ChildHandlers {
  std::function<void(Stream stream, std::string_view bytes)> output;
  /// The process and everything it left in its group is gone, and all of its output has been delivered.
  std::function<void(const ExitStatus& status)> exited;
  /// Every kSampleInterval while it runs; none: nobody looks.
  std::function<void(const ProcessSample& sample)> sampled = nullptr;
};

class Children {
 public:
  /// Raises the limit on open files when `num_processes` at once need that, and starts the watchdog. Throws
  /// std::runtime_error.
  Children(boost::asio::io_context& io, std::size_t num_processes);
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Starts a process; `handlers.exited` follows. Throws StartError.
  pid_t Start(const SpawnRequest& request, ChildHandlers handlers);
  /// Writes to the standard input of a process that reads it; one that is gone takes nothing.
  void Write(pid_t pid, std::string bytes);
  /// Ends its standard input once all is written.
  void CloseInput(pid_t pid);

  /// Asks these to end, and ends them after a grace time.
  void Stop(const std::set<pid_t>& pids, std::chrono::milliseconds grace = kStopGrace);
  /// Ends them at once.
  void Kill(const std::set<pid_t>& pids);
  /// Ends what processes that have ended left behind; nothing of theirs runs when it returns, or what does
  /// cannot be ended.
  void EndLeftovers();
  /// Commands for a shell that are run should dmlc-submit die without undoing by itself what `what` names;
  /// empty ones take them back. All paths in them are full.
  void SetCleanupCommand(const std::string& what, const std::string& commands);
  /// Leaves output where it is until ResumeOutput.
  void PauseOutput();
  void ResumeOutput();

  /// This machine's name.
  const std::string& host() const { return host_; }

 private:
  class Child;

  std::set<pid_t> KnownChildren() const;
  void WaitForChildren();
  void LookAtChildren();
  void Listen(const std::shared_ptr<Child>& child, Stream stream);
  bool ReadOnce(Child& child, Stream stream);
  void ReadAll(Child& child);
  void WriteNext(const std::shared_ptr<Child>& child);
  void Settle(const std::shared_ptr<Child>& child);
  void Finish(Child& child);

  boost::asio::io_context& io_;
  Watchdog watchdog_;
  Spawner spawner_;
  std::string host_;
  boost::asio::signal_set child_signal_;
  ProcessSampler sampler_;
  std::map<pid_t, std::shared_ptr<Child>> children_;
  std::map<std::string, std::string> cleanup_commands_;
  bool paused_ = false;
};

}  // namespace warren::submit
