// TCP sockets for the transport and the bootstrap: addresses, and connections made without blocking. Every
// socket made here is non-blocking and closed on exec.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rabit_engine/base/descriptor.h"

namespace warren::tcp {

using Socket = CloseOnForkDescriptor;

/// An IPv4 or IPv6 address with its port.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t length);
  /// Parses "10.0.0.1:9091" or "[fe80::1]:9091"; nullopt if the text is neither.
  static std::optional<Address> Parse(std::string_view text);
  /// Returns the address of the local or remote end of a socket; the family is AF_UNSPEC if none exists.
  static Address Local(int fd);
  static Address Remote(int fd);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  int port() const;
  void set_port(int port);
  /// Returns the address without the port; IPv4 addresses mapped into IPv6 are shown as IPv4. Returns "a
  /// local socket" for other families.
  std::string host() const;
  std::string ToString() const;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = sizeof(sockaddr_storage);
};

/// Returns all addresses of a host name. Throws EngineError, whose message names the host, or LocalShortage
/// if this process has no descriptor or memory left for the query.
std::vector<Address> Resolve(const std::string& host, int port);

/// Starts connecting. Returns the socket, or an empty one with `error` set to the reason. Once the socket is
/// writable, the connection has been made or has failed, which ConnectError reports.
Socket StartConnect(const Address& address, int& error);
/// Returns 0 if the connection has been made, otherwise the reason for the failure.
int ConnectError(int fd);
/// Connects and waits for the connection. On failure returns an empty socket with `error` set (ETIMEDOUT
/// after the deadline).
Socket ConnectUntil(const Address& address, std::chrono::steady_clock::time_point deadline, int& error);

/// The failed attempts to connect to the addresses of a peer, with their reasons.
class ConnectFailures {
 public:
  /// `error` is 0 if the connection was made but did not lead to the peer.
  void Add(const Address& address, int error, const std::string& why);
  /// Returns the errno of the failure on this host that keeps this process from connecting, or 0 if the peer,
  /// its host or the network may be at fault. An address that this host refuses (posix::ConcernsAddress)
  /// counts only if no attempt has reached beyond this host. `own_hosts`: the addresses of this host.
  /// Attempts to reach these say nothing about a peer on another host.
  int OwnShortage(const std::vector<std::string>& own_hosts = {}) const;
  /// Returns all failures, e.g. "10.0.0.2:4100: Connection refused; 10.0.1.2:4100: No route to host"
  std::string Text() const;
  bool empty() const { return failures_.empty(); }
  void Clear() { failures_.clear(); }

 private:
  struct Failure {
    Address address;
    int error;
    std::string why;
  };
  std::vector<Failure> failures_;
};

/// The default host timeout: a host that is silent for this long is considered dead.
inline constexpr std::chrono::seconds kHostTimeout{30};

/// An inclusive range of ports on which a rank may listen; {0, 0} lets the kernel choose.
struct PortRange {
  int first = 0;
  int last = 0;
};
/// Listens on every address of this machine, including IPv6 if available. If this fails, the socket is empty
/// and `error` an errno.
Socket ListenOn(int port, int& error);
/// Listens on every address of this machine, including IPv6 if available, on a free port of `ports`. Throws
/// EngineError or LocalShortage.
Socket ListenAnywhere(PortRange ports = {});
/// Returns the addresses at which other hosts may reach a listening socket: "address:port" for every address
/// of an active interface, `first_host` first, loopback addresses last, without IPv6 link-local addresses
/// (they mean nothing on another host). Throws LocalShortage.
std::vector<std::string> ListenAddresses(int listener, const std::string& first_host);

/// Returns whether the connection stays on this machine. Connections between two different addresses of this
/// machine are not recognized.
bool StaysHere(int fd);

/// Prepares a socket for use as a link: non-blocking, closed on exec, without Nagle's algorithm if `no_delay`
/// is set, with keepalive probes so that a vanished host is noticed within `host_timeout`. A connection that
/// stays on this machine gets plain congestion control, whatever the system's default: there is no network to
/// be congested, and BBR's pacing halves the speed of large messages (docs/notes/engine-speed.md).
void PrepareLink(int fd, bool no_delay, std::chrono::seconds host_timeout = kHostTimeout);

/// Sets how long sent bytes may stay unacknowledged before the connection breaks; 0 means the kernel's
/// default, about 15 minutes. Only for peers that read promptly: a peer that is busy computing would be
/// considered dead.
void SetUserTimeout(int fd, std::chrono::seconds timeout);

/// Like poll(2), with a deadline. Returns 0 if the call was interrupted, after the deadline, and after an
/// hour. Throws EngineError if poll fails.
int PollUntil(std::span<pollfd> waits, std::chrono::steady_clock::time_point deadline);

/// Waits for poll(2) events on one descriptor. Returns false after the deadline. Throws EngineError if poll
/// fails.
bool WaitFor(int fd, short events, std::chrono::steady_clock::time_point deadline);

/// Returns the whole milliseconds until the deadline, rounded up, at most `limit_ms`, as poll(2) expects.
int MillisecondsUntil(std::chrono::steady_clock::time_point deadline, int limit_ms);

/// Like strerror, but thread-safe.
std::string ErrorText(int error);

}  // namespace warren::tcp
