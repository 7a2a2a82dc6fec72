// Reports events of the links, and of the connections that become links, with epoll, which is edge-triggered
// here. Each link is registered once: a wait costs one system call regardless of the number of links, and
// data that arrives early on a link that is not awaited wakes the rank only once.
#include <fmt/format.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/shortage.h"
#include "rabit_engine/transport/tcp/tcp_connections.h"

namespace warren {

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP &&
              EPOLLRDHUP == posix::kPeerDone);

void TcpTransport::OpenEvents() {
  events_ = CloseOnForkDescriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!events_)
    ThrowShortage(fmt::format("rank {} cannot wait for other ranks", rank_), "epoll_create1", errno);
}

void TcpTransport::Watch(int fd, std::uint64_t key, std::uint32_t events) {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.u64 = key;
  // The descriptor is already registered if its events change, or if a handshake has become a link. The
  // kernel then reports its state again.
  if (epoll_ctl(events_.fd(), EPOLL_CTL_MOD, fd, &event) == 0) return;
  if (errno == ENOENT && epoll_ctl(events_.fd(), EPOLL_CTL_ADD, fd, &event) == 0) return;
  const int error = errno;
  const std::string doing = fmt::format("rank {} cannot wait for events of one more connection", rank_);
  ThrowIfShortage(doing, "epoll_ctl", error);
  throw EngineError(fmt::format("{}: epoll_ctl failed: {}{}", doing, tcp::ErrorText(error),
                                error == ENOSPC ? ". Raise fs.epoll.max_user_watches (sysctl)" : ""));
}

void TcpTransport::WatchForRoom(const TcpLink& link, bool watch) {
  Watch(link.fd(), Key(Subject::kLink, static_cast<std::uint64_t>(link.peer())),
        watch ? kStreamEvents | POLLOUT : kStreamEvents);
}

void TcpTransport::Poll(int timeout_ms) {
  if (!pending_.empty()) DropOldPending();
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(events_.fd(), events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count < 0 && errno != EINTR) throw EngineError("epoll_wait failed: " + tcp::ErrorText(errno));
  for (int i = 0; i < count; ++i) Take(events[i].data.u64, events[i].events);
}

}  // namespace warren
