// Sockets for thousands of workers in one thread. Workers are written as if their calls blocked. A worker
// waits for one socket at a time, like a rabit worker; epoll (edge-triggered, each descriptor registered
// once) wakes it.
#pragma once

#include <netinet/in.h>

#include <coroutine>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bench/bootstrap_workers/task.h"
#include "posix/descriptor.h"

namespace warren::bench {

using posix::Descriptor;

/// Throws std::system_error with errno and the failed operation.
[[noreturn]] void ThrowErrno(const char* doing);

/// Throws std::invalid_argument if `host` is not an IPv4 literal.
sockaddr_in MakeAddress(const std::string& host, std::uint16_t port);

class EventLoop {
 public:
  EventLoop();
  int epoll() const { return epoll_.get(); }
  /// Waits for events, without a timeout, and resumes the fibers they belong to.
  void RunOnce();

 private:
  Descriptor epoll_;
};

/// The thread of control of one worker. Must outlive its open sockets, because epoll holds a pointer to it.
class Fiber {
 public:
  explicit Fiber(EventLoop& loop) : loop_(&loop) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// If `from` is null, the system chooses the source address. This and the following functions throw
  /// std::system_error.
  Task<Descriptor> Connect(sockaddr_in to, const sockaddr_in* from);
  Task<Descriptor> Accept(const Descriptor& listener);
  /// Returns some bytes, at most `limit`. The end of the stream is an error: no peer may close its end first.
  Task<std::string> Receive(const Descriptor& socket, std::size_t limit);
  /// Sends without waiting: messages are far smaller than a socket's buffer. Throws if there is no space.
  void Send(const Descriptor& socket, std::string_view bytes) const;
  /// Listens on a free port at `address` and stores the port in `address`.
  Descriptor Listen(sockaddr_in& address);

  /// Resumes the fiber upon an event at one of its sockets.
  void Wake() {
    if (waiting_) std::exchange(waiting_, {}).resume();
  }

 private:
  struct NextEvent {
    Fiber* fiber;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) noexcept { fiber->waiting_ = waiting; }
    void await_resume() const noexcept {}
  };
  void Watch(const Descriptor& socket);

  EventLoop* loop_;
  std::coroutine_handle<> waiting_;
};

}  // namespace warren::bench
