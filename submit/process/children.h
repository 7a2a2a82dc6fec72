// The processes that dmlc-submit has started on this machine: the workers themselves, or the ssh, mpirun or
// kubectl processes that start workers elsewhere. All are watched, and none outlives dmlc-submit.
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

/// The time for which processes that outlive their parent may still write output (as `> >(tee log)` in bash
/// does) before they are killed.
inline constexpr std::chrono::milliseconds kLeftoverGrace{150};
/// The number of descriptors per process: three pipes, its log, its connection to the tracker.
inline constexpr std::size_t kDescriptorsPerProcess = 5;
/// The number of descriptors needed for other purposes: for dmlc-submit itself, for starting a process, and
/// for unauthenticated connections to the tracker.
inline constexpr std::size_t kDescriptorsBeside = 128;

/// Functions that are called from the io_context, never from within Start.
struct ChildHandlers {
  std::function<void(Stream stream, std::string_view bytes)> output;
  /// Called when the process has ended, the rest of its group has been killed, and their output has been
  /// delivered.
  std::function<void(const ExitStatus& status)> exited;
  /// Called about every kSampleInterval while the process runs. If null, the process is not sampled.
  std::function<void(const ProcessSample& sample)> sampled = nullptr;
};

class Children {
 public:
  /// Starts the watchdog, and raises the limit on open files if `num_processes` simultaneous processes need
  /// it. Throws std::runtime_error if either fails.
  Children(boost::asio::io_context& io, std::size_t num_processes);
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Starts a process; `handlers.exited` is called later. Throws StartError.
  pid_t Start(const SpawnRequest& request, ChildHandlers handlers);
  /// Writes to the standard input of a process that was started with reads_input. Does nothing if the process
  /// has ended or CloseInput was called.
  void Write(pid_t pid, std::string bytes);
  /// Closes the standard input of the process once everything is written.
  void CloseInput(pid_t pid);

  /// Sends SIGTERM to the groups of these processes, and SIGKILL after `grace`.
  void Stop(const std::set<pid_t>& pids, std::chrono::milliseconds grace = kStopGrace);
  /// Sends SIGKILL to the groups of these processes.
  void Kill(const std::set<pid_t>& pids);
  /// Kills descendants that have outlived ended processes, and waits until all are gone, for about a second
  /// at most.
  void EndLeftovers();
  /// Sets the shell commands that clean up `what` if dmlc-submit dies before doing so itself. An empty string
  /// removes the commands. All paths in them must be absolute. Logs a warning if all commands together are
  /// too long for the watchdog.
  void SetCleanupCommand(const std::string& what, const std::string& commands);
  /// Leaves the output of running processes in their pipes until ResumeOutput.
  void PauseOutput();
  void ResumeOutput();

  /// The name of this machine.
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
