#include "submit/local.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <csignal>
#include <vector>

#include "submit/strays.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
/// As much as is read once a process has ended: more than any pipe holds, and an end for one that some
/// escaped descendant goes on filling.
constexpr std::size_t kLastOutputBytes = std::size_t{2} << 20;

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// The environment of dmlc-submit with the process's own variables in place of inherited ones.
std::vector<std::string> WholeEnvironment(const PlannedProcess& process, int attempt) {
  const tracker::Environment added = EnvironmentOfAttempt(process, attempt);
  const auto is_replaced = [&](std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    for (const auto& entry : added) {
      if (entry.first == name) return true;
    }
    for (const std::string& entry : process.unset) {
      if (entry == name) return true;
    }
    return false;
  };
  std::vector<std::string> whole;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_replaced(*variable)) whole.emplace_back(*variable);
  }
  for (const auto& [name, value] : added) whole.push_back(fmt::format("{}={}", name, value));
  return whole;
}

}  // namespace

/// A process that runs, or has ended and is being cleaned up after.
class LocalCluster::Child {
 public:
  struct Output {
    asio::posix::stream_descriptor pipe;
    bool listening = false;
  };

  Child(asio::io_context& io, std::size_t number, SpawnedProcess process)
      : index(number),
        pid(process.pid),
        out{asio::posix::stream_descriptor(io, process.out.release())},
        err{asio::posix::stream_descriptor(io, process.err.release())},
        leftover_timer(io) {}

  Output& OutputOf(Stream stream) { return stream == Stream::kOut ? out : err; }
  bool HasOutput() const { return out.pipe.is_open() || err.pipe.is_open(); }

  std::size_t index;
  pid_t pid;
  Output out, err;  ///< closed at their end
  asio::steady_timer leftover_timer;
  std::optional<ExitStatus> status;  ///< once it has ended
  bool finished = false;
};

LocalCluster::LocalCluster(asio::io_context& io, std::size_t num_processes, ClusterEvents events)
    : io_(io), events_(std::move(events)), host_(HostName()), child_signal_(io), grace_timer_(io) {
  RaiseFileLimit(num_processes * kDescriptorsPerProcess + kDescriptorsBeside, spawner_);
  AdoptOrphans();
  child_signal_.add(SIGCHLD);
  WaitForChildren();
}

LocalCluster::~LocalCluster() {
  for (const auto& [index, child] : children_) {
    SignalGroup(child->pid, SIGKILL);
    WithdrawGroup(guardian_.pipe(), child->pid);
  }
  EndOrphans(KnownChildren());
}

std::set<pid_t> LocalCluster::KnownChildren() const {
  std::set<pid_t> known = {guardian_.pid()};
  for (const auto& [index, child] : children_) known.insert(child->pid);
  return known;
}

Started LocalCluster::Start(std::size_t index, const PlannedProcess& process, int attempt) {
  SpawnedProcess spawned =
      spawner_.Spawn({process.file, process.argv, WholeEnvironment(process, attempt)}, guardian_.pipe());
  const pid_t pid = spawned.pid;
  const auto child = std::make_shared<Child>(io_, index, std::move(spawned));
  children_[index] = child;
  Listen(child, Stream::kOut);
  Listen(child, Stream::kErr);
  return {pid, host_};
}

void LocalCluster::Stop() {
  std::vector<std::shared_ptr<Child>> stopped;  // the job may be started again before the time is up
  for (const auto& [index, child] : children_) {
    TerminateGroup(child->pid);
    stopped.push_back(child);
  }
  grace_timer_.expires_after(kStopGrace);
  grace_timer_.async_wait([stopped = std::move(stopped)](const boost::system::error_code& error) {
    for (const auto& child : stopped) {
      if (!error && !child->finished) SignalGroup(child->pid, SIGKILL);
    }
  });
}

void LocalCluster::Kill() {
  for (const auto& [index, child] : children_) SignalGroup(child->pid, SIGKILL);
}

void LocalCluster::EndLeftovers() {
  EndOrphans(KnownChildren());
}

void LocalCluster::PauseOutput() {
  paused_ = true;
}

void LocalCluster::ResumeOutput() {
  paused_ = false;
  for (const auto& [index, child] : children_) {
    Listen(child, Stream::kOut);
    Listen(child, Stream::kErr);
  }
}

void LocalCluster::WaitForChildren() {
  child_signal_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    WaitForChildren();
    LookAtChildren();
  });
}

void LocalCluster::LookAtChildren() {
  std::vector<pid_t> groups;
  std::vector<std::shared_ptr<Child>> ended;
  for (const auto& [index, child] : children_) {
    groups.push_back(child->pid);
    if (child->status) continue;
    child->status = PeekExit(child->pid);
    if (child->status) ended.push_back(child);
  }
  guardian_.ReplaceIfDead(groups);
  AdoptedOrphans(KnownChildren());  // reaps those that have ended
  for (const auto& child : ended) Settle(child);
}

void LocalCluster::Listen(const std::shared_ptr<Child>& child, Stream stream) {
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

/// Reads what fits into one buffer; closes the pipe at its end. True when something was read.
bool LocalCluster::ReadOnce(Child& child, Stream stream) {
  static std::array<char, kReadBytes> buffer;  // one for all: there is one thread
  auto& pipe = child.OutputOf(stream).pipe;
  if (!pipe.is_open()) return false;
  pipe.native_non_blocking(true);
  const ssize_t count = read(pipe.native_handle(), buffer.data(), buffer.size());
  if (count > 0) {
    events_.output(child.index, stream, {buffer.data(), static_cast<std::size_t>(count)});
    return true;
  }
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) pipe.close();
  return false;
}

void LocalCluster::ReadAll(Child& child) {
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    for (std::size_t i = 0; i < kLastOutputBytes / kReadBytes && ReadOnce(child, stream); ++i) {
    }
  }
}

/// The process has ended but is not reaped, so that the number of its group cannot pass to another. When its
/// pipes are still held open something it started is left: that gets a moment to write what it has to.
void LocalCluster::Settle(const std::shared_ptr<Child>& child) {
  ReadAll(*child);
  if (!child->HasOutput()) return Finish(*child);
  child->leftover_timer.expires_after(kLeftoverGrace);
  child->leftover_timer.async_wait([this, child](const boost::system::error_code& error) {
    if (!error) Finish(*child);
  });
}

void LocalCluster::Finish(Child& child) {
  if (std::exchange(child.finished, true)) return;
  SignalGroup(child.pid, SIGKILL);
  ReadAll(child);
  child.out.pipe.close();
  child.err.pipe.close();
  child.leftover_timer.cancel();
  WithdrawGroup(guardian_.pipe(), child.pid);
  Reap(child.pid);
  const std::size_t index = child.index;
  const ExitStatus status = *child.status;
  children_.erase(index);  // handlers that are still to run hold the child
  events_.exited(index, status);
}

}  // namespace warren::submit
