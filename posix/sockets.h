// Sockets and pipes that programs started from this process do not inherit, and socket features whose names
// differ between systems or that some systems lack. Define WARREN_PORTABLE to test the code for other systems
// on Linux. Depends on nothing else in the tree.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

namespace warren::posix {

/// The poll event that reports that the other end will send nothing more.
#ifdef POLLRDHUP
inline constexpr short kPeerDone = POLLRDHUP;
#else
inline constexpr short kPeerDone = POLLHUP;
#endif

/// The socket option for the number of idle seconds after which the kernel probes the peer of a TCP
/// connection.
#ifdef TCP_KEEPIDLE
inline constexpr int kKeepIdle = TCP_KEEPIDLE;
#else
inline constexpr int kKeepIdle = TCP_KEEPALIVE;
#endif

/// The longest idle time and the longest interval of probes that Linux accepts, in seconds.
inline constexpr int kMostKeepAliveSeconds = 32'767;

/// Whether accept may succeed if called again at once after this error: the error concerns a single
/// connection, which is lost, or a signal interrupted the call.
inline bool ConcernsOneConnection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPERM:  // forbidden by a firewall rule
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
      return true;
    default:
      return false;
  }
}

/// Whether a connection is pending on this listener. If the process has no free descriptor, the result of
/// accept does not show this: accept then fails in either case.
inline bool HasConnection(int listener) {
  pollfd ready{listener, POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

/// Has the kernel break the connection once sent bytes have been unacknowledged for this many seconds; at
/// most about 24 days. 0 means the kernel's default. Failures are ignored.
inline void SetUserTimeout(int fd, int seconds) {
#ifdef TCP_USER_TIMEOUT
  const int name = TCP_USER_TIMEOUT;
  const int value = 1000 * std::min(seconds, std::numeric_limits<int>::max() / 1000);
#else
  const int name = TCP_RXT_CONNDROPTIME;
  const int value = seconds;
#endif
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, name, &value, sizeof value));
}

enum class Blocking { kNo, kYes };

#if defined(__linux__) && !defined(WARREN_PORTABLE)

/// Returns a stream socket, or -1 with errno set.
inline int NewSocket(int family, Blocking blocking) {
  return socket(family, SOCK_STREAM | SOCK_CLOEXEC | (blocking == Blocking::kYes ? 0 : SOCK_NONBLOCK), 0);
}

/// Returns the next connection, or -1 with errno set.
inline int Accept(int listener, Blocking blocking) {
  return accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | (blocking == Blocking::kYes ? 0 : SOCK_NONBLOCK));
}

/// Creates a pipe. Returns false and sets errno on failure.
inline bool NewPipe(std::array<int, 2>& ends) {
  return pipe2(ends.data(), O_CLOEXEC) == 0;
}

#else

// If another thread starts a program between the creation of a descriptor and the setting of FD_CLOEXEC, that
// program inherits the descriptor.

inline int Prepared(int fd, Blocking blocking) {
  if (fd < 0) return fd;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  // On some systems, an accepted socket inherits the listener's flags; on others, it does not.
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
