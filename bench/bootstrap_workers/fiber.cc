#include "bench/bootstrap_workers/fiber.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace warren::bench {
namespace {

/// rabit's backlog; a worker accepts at most five links.
constexpr int kBacklog = 16;
constexpr int kEventsPerWait = 256;

sockaddr* Generic(sockaddr_in& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

Descriptor OpenSocket() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) ThrowErrno("socket");
  return socket;
}

}  // namespace

void ThrowErrno(const char* doing) {
  throw std::system_error(errno, std::generic_category(), doing);
}

sockaddr_in MakeAddress(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw std::invalid_argument("expected an IPv4 address, got \"" + host + "\"");
  }
  return address;
}

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_.get() < 0) ThrowErrno("epoll_create1");
}

void EventLoop::RunOnce() {
  std::array<epoll_event, kEventsPerWait> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerWait, -1);
  if (count < 0 && errno != EINTR) ThrowErrno("epoll_wait");
  for (int i = 0; i < count; ++i) static_cast<Fiber*>(events[i].data.ptr)->Wake();
}

void Fiber::Watch(const Descriptor& socket) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  event.data.ptr = this;
  if (epoll_ctl(loop_->epoll(), EPOLL_CTL_ADD, socket.get(), &event) != 0) ThrowErrno("epoll_ctl");
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): a coroutine keeps copies, not references
Task<Descriptor> Fiber::Connect(sockaddr_in to, const sockaddr_in* from) {
  Descriptor socket = OpenSocket();
  if (from != nullptr) {
    // The port is chosen at connect, when the peer is known, so that ports do not run out.
    const int on = 1;
    if (setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) != 0) {
      ThrowErrno("IP_BIND_ADDRESS_NO_PORT");
    }
    sockaddr_in source = *from;
    source.sin_port = 0;
    if (bind(socket.get(), Generic(source), sizeof source) != 0) ThrowErrno("bind");
  }
  if (connect(socket.get(), Generic(to), sizeof to) != 0) {
    if (errno != EINPROGRESS) ThrowErrno("connect");
    Watch(socket);
    for (;;) {
      co_await NextEvent{this};
      int error = 0;
      socklen_t size = sizeof error;
      if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) ThrowErrno("getsockopt");
      if (error != 0) throw std::system_error(error, std::generic_category(), "connect");
      sockaddr_in peer{};
      socklen_t peer_size = sizeof peer;
      if (getpeername(socket.get(), Generic(peer), &peer_size) == 0) break;
    }
  } else {
    Watch(socket);
  }
  co_return socket;
}

Task<Descriptor> Fiber::Accept(const Descriptor& listener) {
  for (;;) {
    Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() >= 0) {
      Watch(socket);
      co_return socket;
    }
    if (errno != EAGAIN && errno != ECONNABORTED) ThrowErrno("accept");
    co_await NextEvent{this};
  }
}

Task<std::string> Fiber::Receive(const Descriptor& socket, std::size_t limit) {
  std::array<char, 1024> buffer;
  for (;;) {
    const ssize_t count = recv(socket.get(), buffer.data(), std::min(limit, buffer.size()), 0);
    if (count > 0) co_return std::string(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0) throw std::system_error(ECONNRESET, std::generic_category(), "the peer hung up");
    if (errno != EAGAIN) ThrowErrno("recv");
    co_await NextEvent{this};
  }
}

void Fiber::Send(const Descriptor& socket, std::string_view bytes) const {
  const ssize_t count = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count < 0) ThrowErrno("send");
  if (static_cast<std::size_t>(count) != bytes.size())
    throw std::runtime_error("a short message was truncated");
}

Descriptor Fiber::Listen(sockaddr_in& address) {
  Descriptor listener = OpenSocket();
  address.sin_port = 0;
  if (bind(listener.get(), Generic(address), sizeof address) != 0) ThrowErrno("bind");
  if (listen(listener.get(), kBacklog) != 0) ThrowErrno("listen");
  socklen_t size = sizeof address;
  if (getsockname(listener.get(), Generic(address), &size) != 0) ThrowErrno("getsockname");
  Watch(listener);
  return listener;
}

}  // namespace warren::bench
