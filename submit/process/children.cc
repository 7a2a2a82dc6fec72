#include "submit/process/children.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <csignal>
#include <deque>
#include <optional>
#include <vector>

#include "posix/host_name.h"
#include "posix/process.h"
#include "submit/process/orphans.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
/// Limit on the bytes read from each stream at once after a process has ended. It is higher than the capacity
/// of a pipe, and finite because an escaped descendant may continue to write.
constexpr std::size_t kLastOutputBytes = std::size_t{2} << 20;

}  // namespace

/// A process that is running, or has ended and is being cleaned up.
class Children::Child {
 public:
  struct Output {
    asio::posix::stream_descriptor pipe;
    bool listening = false;
  };

  Child(asio::io_context& io, SpawnedProcess process, ChildHandlers given)
      : pid(process.pid),
        handlers(std::move(given)),
        out{asio::posix::stream_descriptor(io, process.out.release())},
        err{asio::posix::stream_descriptor(io, process.err.release())},
        in(io),
        leftover_timer(io) {
    if (process.in) in.assign(process.in.release());
  }

  Output& OutputOf(Stream stream) { return stream == Stream::kOut ? out : err; }
  bool HasOutput() const { return out.pipe.is_open() || err.pipe.is_open(); }

  pid_t pid;
  ChildHandlers handlers;
  Output out, err;  ///< standard output and standard error; closed at end of file
  asio::posix::stream_descriptor in;
  std::deque<std::string> unwritten;  ///< input to be written to `in`; the first piece is being written
  bool input_ends = false;            ///< whether to close `in` once everything is written
  asio::steady_timer leftover_timer;
  std::optional<ExitStatus> status;  ///< nullopt while the process runs
  bool finished = false;
};

Children::Children(asio::io_context& io, std::size_t num_processes)
    : io_(io), host_(posix::HostName()), child_signal_(io), sampler_(io) {
  spawner_.RaiseFileLimit(num_processes * kDescriptorsPerProcess + kDescriptorsBeside);
  posix::BecomeSubreaper();
  child_signal_.add(SIGCHLD);
  WaitForChildren();
}

Children::~Children() {
  for (const auto& [pid, child] : children_) {
    SignalGroup(pid, SIGKILL);
    WithdrawGroup(watchdog_.pipe(), pid);
  }
  EndOrphans(KnownChildren());
}

std::set<pid_t> Children::KnownChildren() const {
  std::set<pid_t> known = {watchdog_.pid()};
  for (const auto& [pid, child] : children_) known.insert(pid);
  return known;
}

pid_t Children::Start(const SpawnRequest& request, ChildHandlers handlers) {
  SpawnedProcess spawned = spawner_.Spawn(request, watchdog_.pipe());
  const pid_t pid = spawned.pid;
  if (handlers.sampled) sampler_.Watch(pid, std::move(handlers.sampled));
  const auto child = std::make_shared<Child>(io_, std::move(spawned), std::move(handlers));
  children_[pid] = child;
  Listen(child, Stream::kOut);
  Listen(child, Stream::kErr);
  return pid;
}

void Children::Write(pid_t pid, std::string bytes) {
  const auto found = children_.find(pid);
  if (found == children_.end() || !found->second->in.is_open() || found->second->input_ends) return;
  found->second->unwritten.push_back(std::move(bytes));
  if (found->second->unwritten.size() == 1) WriteNext(found->second);
}

void Children::CloseInput(pid_t pid) {
  const auto found = children_.find(pid);
  if (found == children_.end()) return;
  found->second->input_ends = true;
  if (found->second->unwritten.empty()) found->second->in.close();
}

void Children::WriteNext(const std::shared_ptr<Child>& child) {
  asio::async_write(child->in, asio::buffer(child->unwritten.front()),
                    [this, child](const boost::system::error_code& error, std::size_t) {
                      child->unwritten.pop_front();
                      if (error) child->unwritten.clear();  // the process no longer reads
                      if (!child->unwritten.empty()) return WriteNext(child);
                      if (error || child->input_ends) child->in.close();
                    });
}

void Children::Stop(const std::set<pid_t>& pids, std::chrono::milliseconds grace) {
  std::vector<std::shared_ptr<Child>> stopped;
  for (const pid_t pid : pids) {
    const auto found = children_.find(pid);
    if (found == children_.end()) continue;
    TerminateGroup(pid);
    stopped.push_back(found->second);
  }
  const auto timer = std::make_shared<asio::steady_timer>(io_, grace);
  timer->async_wait([stopped = std::move(stopped), timer](const boost::system::error_code& error) {
    for (const auto& child : stopped) {
      if (!error && !child->finished) SignalGroup(child->pid, SIGKILL);
    }
  });
}

void Children::Kill(const std::set<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (children_.contains(pid)) SignalGroup(pid, SIGKILL);
  }
}

void Children::EndLeftovers() {
  EndOrphans(KnownChildren());
}

void Children::SetCleanupCommand(const std::string& what, const std::string& commands) {
  cleanup_commands_[what] = commands;
  std::string all;
  for (const auto& [key, one] : cleanup_commands_) all += one.empty() ? "" : one + '\n';
  if (!watchdog_.SetCleanupCommand(all))
    spdlog::warn("if dmlc-submit is killed, clean up with: {}", commands);
}

void Children::PauseOutput() {
  paused_ = true;
}

void Children::ResumeOutput() {
  paused_ = false;
  for (const auto& [pid, child] : children_) {
    Listen(child, Stream::kOut);
    Listen(child, Stream::kErr);
  }
}

void Children::WaitForChildren() {
  child_signal_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    WaitForChildren();
    LookAtChildren();
  });
}

void Children::LookAtChildren() {
  std::vector<pid_t> groups;
  std::vector<std::shared_ptr<Child>> ended;
  for (const auto& [pid, child] : children_) {
    groups.push_back(pid);
    if (child->status) continue;
    child->status = PeekExit(pid);
    if (child->status) ended.push_back(child);
  }
  watchdog_.ReplaceIfDead(groups);
  AdoptedOrphans(KnownChildren());  // reaps the orphans that have exited
  for (const auto& child : ended) Settle(child);
}

void Children::Listen(const std::shared_ptr<Child>& child, Stream stream) {
  Child::Output& output = child->OutputOf(stream);
  if (paused_ || output.listening || !output.pipe.is_open()) return;
  output.listening = true;
  output.pipe.async_wait(asio::posix::descriptor_base::wait_read,
                         [this, child, stream](const boost::system::error_code& error) {
                           child->OutputOf(stream).listening = false;
                           if (error) return;
                           ReadOnce(*child, stream);
                           Listen(child, stream);
                           if (child->status && !child->HasOutput()) Finish(*child);
                         });
}

/// Reads at most one buffer. Closes the pipe at end of file or on an error. Returns whether anything was
/// read.
bool Children::ReadOnce(Child& child, Stream stream) {
  static std::array<char, kReadBytes> buffer;  // shared: there is only one thread
  auto& pipe = child.OutputOf(stream).pipe;
  if (!pipe.is_open()) return false;
  pipe.native_non_blocking(true);
  const ssize_t count = read(pipe.native_handle(), buffer.data(), buffer.size());
  if (count > 0) {
    child.handlers.output(stream, {buffer.data(), static_cast<std::size_t>(count)});
    return true;
  }
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) pipe.close();
  return false;
}

void Children::ReadAll(Child& child) {
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    for (std::size_t i = 0; i < kLastOutputBytes / kReadBytes && ReadOnce(child, stream); ++i) {
    }
  }
}

/// Handles a process that has ended. It is not reaped yet, so that its group's number cannot be reused. If
/// its pipes are still open, processes that it started are still running; they are given a short time to
/// write their last output.
void Children::Settle(const std::shared_ptr<Child>& child) {
  ReadAll(*child);
  if (!child->HasOutput()) return Finish(*child);
  child->leftover_timer.expires_after(kLeftoverGrace);
  child->leftover_timer.async_wait([this, child](const boost::system::error_code& error) {
    if (!error) Finish(*child);
  });
}

void Children::Finish(Child& child) {
  if (std::exchange(child.finished, true)) return;
  sampler_.Forget(child.pid);
  SignalGroup(child.pid, SIGKILL);
  ReadAll(child);
  child.out.pipe.close();
  child.err.pipe.close();
  child.leftover_timer.cancel();
  WithdrawGroup(watchdog_.pipe(), child.pid);
  Reap(child.pid);
  child.in.close();
  const std::shared_ptr<Child> kept = children_.at(child.pid);
  children_.erase(child.pid);
  kept->handlers.exited(*kept->status);
  kept->handlers = {};  // releases their captures; pending waits may keep the Child longer
}

}  // namespace warren::submit
