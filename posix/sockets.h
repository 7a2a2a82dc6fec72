// Sockets and pipes that a program started from this one does not inherit, and what is named differently, or
// not there, on systems other than Linux. WARREN_PORTABLE: as there, on Linux, so that it is tested. Needs
// nothing else of the tree.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace warren::posix {

/// What poll is asked for, and says, when the other end sends nothing more.
#ifdef POLLRDHUP
inline constexpr short kPeerDone = POLLRDHUP;
#else
inline constexpr short kPeerDone = POLLHUP;
#endif

/// The socket option for the seconds without data after which the kernel probes the peer of a TCP connection.
#ifdef TCP_KEEPIDLE
inline constexpr int kKeepIdle = TCP_KEEPIDLE;
#else
inline constexpr int kKeepIdle = TCP_KEEPALIVE;
#endif

/// Whether accept failed with this error for one connection, which is gone: the next one may be accepted.
inline bool ConcernsOneConnection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPERM:  // a rule of the firewall
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
      return true;
    default:
      return false;
  }
}

/// Whether a connection waits at this listener. In a process without a free descriptor accept
/// fails whether a connection waits or not.
inline bool HasConnection(int listener) {
  pollfd ready{listener, POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

/// The connection breaks when bytes that were sent stay unacknowledged for so long; 0: when the kernel's
/// patience ends.
inline void SetUserTimeout(int fd, int seconds) {
#ifdef TCP_USER_TIMEOUT
  const int name = TCP_USER_TIMEOUT;
  const int value = 1000 * seconds;
#else
  const int name = TCP_RXT_CONNDROPTIME;
  const int value = seconds;
#endif
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, name, &value, sizeof value));
}

enum class Blocking { kNo, kYes };

#if defined(__linux__) && !defined(WARREN_PORTABLE)

/// A stream socket, or -1 with errno.
inline int NewSocket(int family, Blocking blocking) {
  return socket(family, SOCK_STREAM | SOCK_CLOEXEC | (blocking == Blocking::kYes ? 0 : SOCK_NONBLOCK), 0);
}

/// The next connection, or -1 with errno.
inline int Accept(int listener, Blocking blocking) {
  return accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | (blocking == Blocking::kYes ? 0 : SOCK_NONBLOCK));
}

/// Both ends of a pipe; false with errno.
inline bool NewPipe(std::array<int, 2>& ends) {
  return pipe2(ends.data(), O_CLOEXEC) == 0;
}

#else

// A program that another thread starts between the two calls inherits the descriptor.

inline int Prepared(int fd, Blocking blocking) {
  if (fd < 0) return fd;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  // Systems on which an accepted socket has the listener's flags, and such on which it has not.
  const int flags = fcntl(fd, F_GETFL) & ~O_NONBLOCK;
  fcntl(fd, F_SETFL, blocking == Blocking::kYes ? flags : flags | O_NONBLOCK);
#ifdef SO_NOSIGPIPE
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
  return fd;
}

inline int NewSocket(int family, Blocking blocking) {
  return Prepared(socket(family, SOCK_STREAM, 0), blocking);
}

inline int Accept(int listener, Blocking blocking) {
  return Prepared(accept(listener, nullptr, nullptr), blocking);
}

inline bool NewPipe(std::array<int, 2>& ends) {
  if (pipe(ends.data()) != 0) return false;
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
}

#endif

}  // namespace warren::posix
