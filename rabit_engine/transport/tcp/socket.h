// The few things that the transport and the bootstrap both need of TCP sockets: addresses, and connections
// made without blocking. Every socket made here is non-blocking and closed on exec.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
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
  /// "10.0.0.1:9091" or "[fe80::1]:9091"; nothing when the text is neither.
  static std::optional<Address> Parse(std::string_view text);
  /// The address of this end of a socket, or of its other end; family AF_UNSPEC if it has none.
  static Address Local(int fd);
  static Address Remote(int fd);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  int port() const;
  void set_port(int port);
  /// Without the port. IPv4 addresses mapped into IPv6 are shown as IPv4.
  std::string host() const;
  std::string ToString() const;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = sizeof(sockaddr_storage);
};

/// All addresses of a name. Throws EngineError that names it, LocalShortage where this process has no
/// descriptor or memory left for the question.
std::vector<Address> Resolve(const std::string& host, int port);

/// Begins to connect. Returns the socket, or none with `error` set to the reason. The connection is made, or
/// has failed, when the socket can be written; ConnectError then tells which.
Socket StartConnect(const Address& address, int& error);
/// 0 when a connection that was begun is there, else the reason.
int ConnectError(int fd);
/// Connects and waits for it. Returns none with `error` set (ETIMEDOUT after the deadline).
Socket ConnectUntil(const Address& address, std::chrono::steady_clock::time_point deadline, int& error);

/// Why no connection to one peer could be made, by address.
class ConnectFailures {
 public:
  /// `error` 0: the connection was made, and did not lead to the peer.
  void Add(const Address& address, int error, const std::string& why);
  /// The error by which this host itself keeps this process from connecting, or 0 if the peer, its host or
  /// the network may be at fault. An address that this host refuses (ConcernsAddress) counts if no other one
  /// has led away from this host: `own_hosts` are the addresses of this one, where a peer elsewhere is not
  /// found.
  int OwnShortage(const std::vector<std::string>& own_hosts = {}) const;
  /// "10.0.0.2:4100: Connection refused; 10.0.1.2:4100: No route to host"
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

/// Silence after which a host is taken for gone, where nobody has said otherwise.
inline constexpr std::chrono::seconds kHostTimeout{30};

/// Listens at a port of the kernel's choice on every address of this machine, IPv6 where there is any.
/// Throws EngineError, LocalShortage.
Socket ListenAnywhere();
/// Where others may reach a listening socket: "address:port" for every address of this machine, `first_host`
/// first, loopback addresses last, without link-local ones (they mean nothing on another host). Throws
/// LocalShortage.
std::vector<std::string> ListenAddresses(int listener, const std::string& first_host);

/// Makes a socket of any origin what a link needs: non-blocking, closed on exec, no Nagle delay when asked,
/// keepalive probes so that a host that vanished is noticed within `host_timeout`. A connection that stays on
/// this machine gets plain congestion control whatever the system's is: there is no network to be congested,
/// and BBR's pacing halves the speed of large messages (docs/explanation/engine.md).
void PrepareLink(int fd, bool no_delay, std::chrono::seconds host_timeout = kHostTimeout);

/// How long sent bytes may stay unacknowledged before the connection breaks; 0: as long as the kernel's
/// patience lasts, a quarter of an hour. For peers that read whatever comes: those that compute would be
/// taken for dead.
void SetUserTimeout(int fd, std::chrono::seconds timeout);

/// Waits for poll(2) events on one descriptor. Returns false after the deadline.
bool WaitFor(int fd, short events, std::chrono::steady_clock::time_point deadline);

/// What poll wants: whole milliseconds until the deadline, rounded up, at most `limit`.
int MillisecondsUntil(std::chrono::steady_clock::time_point deadline, int limit_ms);

/// strerror, thread-safe.
std::string ErrorText(int error);

}  // namespace warren::tcp
