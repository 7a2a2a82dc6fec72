#include "rabit_engine/transport/tcp/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "posix/shortage.h"
#include "posix/sockets.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/parse_number.h"
#include "rabit_engine/base/shortage.h"

namespace warren::tcp {
namespace {

// A vanished host is noticed within the host timeout: probes begin after a third of it without data, and this
// many unanswered probes take up the rest. The peer's kernel answers them, so a process that merely computes,
// or is stopped, is never considered dead.
constexpr int kKeepCount = 4;

// The listen backlog: how many connections may queue while this process is busy. The kernel caps it at its
// own limit (somaxconn).
constexpr int kBacklog = 4096;

void SetOption(int fd, int level, int name, int value) {
  // Errors are ignored: a socket without the option, such as a socketpair in a test, is still a byte stream.
  static_cast<void>(setsockopt(fd, level, name, &value, sizeof value));
}

#ifdef TCP_CONGESTION
// The congestion control algorithm that every Linux kernel has and that requires no privileges.
constexpr char kPlainCongestionControl[] = "reno";
#endif

Socket NewSocket(int family) {
  return Socket(posix::NewSocket(family, posix::Blocking::kNo));
}

Socket TryListen(int family, int port, int& error) {
  Socket listener = NewSocket(family);
  if (!listener) {
    error = errno;
    return {};
  }
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    SetOption(listener.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    reinterpret_cast<sockaddr_in6*>(&any)->sin6_port = htons(static_cast<std::uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in*>(&any)->sin_port = htons(static_cast<std::uint16_t>(port));
  }
  // Allows ports whose last connections have only just closed; otherwise a range could run out of ports.
  if (port != 0) SetOption(listener.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  const socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&any), length) != 0 ||
      listen(listener.fd(), kBacklog) != 0) {
    error = errno;
    return {};
  }
  return listener;
}

bool IsLinkLocal(const Address& address) {
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr);
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t length) : length_(length) {
  std::memcpy(&storage_, address, std::min<std::size_t>(length, sizeof storage_));
}

std::optional<Address> Address::Parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find('\0') != std::string_view::npos) return std::nullopt;
  const auto port = ParseNumber(text.substr(colon + 1), 1, 65535);
  if (!port) return std::nullopt;
  std::string host(text.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(*port));
    if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return std::nullopt;
    return Address(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(*port));
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return std::nullopt;
  return Address(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

Address Address::Local(int fd) {
  Address address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.length_) != 0) return {};
  return address;
}

Address Address::Remote(int fd) {
  Address address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.length_) != 0) return {};
  return address;
}

int Address::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

void Address::set_port(int port) {
  const auto value = htons(static_cast<std::uint16_t>(port));
  if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = value;
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = value;
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text, sizeof text);
    return text;
  }
  if (family() == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      inet_ntop(AF_INET, v6.s6_addr + 12, text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &v6, text, sizeof text);
    }
    return text;
  }
  return "a local socket";
}

std::string Address::ToString() const {
  std::string name = host();
  if (port() == 0) return name;
  return name.find(':') == std::string::npos ? fmt::format("{}:{}", name, port())
                                             : fmt::format("[{}]:{}", name, port());
}

std::vector<Address> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    // If the resolver has no free descriptor for its files and sockets, it reports that the name does not
    // exist.
    const int shortage = error == EAI_SYSTEM   ? errno
                         : error == EAI_MEMORY ? ENOMEM
                                               : posix::DescriptorShortage();
    const std::string doing = fmt::format("the name \"{}\" cannot be resolved", host);
    ThrowIfShortage(doing, "getaddrinfo", shortage);
    throw EngineError(
        fmt::format("{}: {}", doing, error == EAI_SYSTEM ? ErrorText(shortage) : gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, &freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    addresses.emplace_back(entry->ai_addr, entry->ai_addrlen);
  }
  return addresses;
}

Socket StartConnect(const Address& address, int& error) {
  Socket socket = NewSocket(address.family());
  error = 0;
  if (!socket) {
    error = errno;
  } else if (connect(socket.fd(), address.data(), address.length()) != 0 && errno != EINPROGRESS) {
    error = errno;
    socket.Close();
  }
  return socket;
}

int ConnectError(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

Socket ConnectUntil(const Address& address, std::chrono::steady_clock::time_point deadline, int& error) {
  Socket socket = StartConnect(address, error);
  if (!socket) return socket;
  error = WaitFor(socket.fd(), POLLOUT, deadline) ? ConnectError(socket.fd()) : ETIMEDOUT;
  if (error != 0) socket.Close();
  return socket;
}

Socket ListenOn(int port, int& error) {
  Socket listener = TryListen(AF_INET6, port, error);  // accepts IPv4 connections too
  if (!listener && error != EADDRINUSE) listener = TryListen(AF_INET, port, error);
  return listener;
}

Socket ListenAnywhere(PortRange ports) {
  int error = 0;
  const int count = ports.last - ports.first + 1;
  // The ranks on a host start at different ports, so that they rarely try the same one.
  const int begin = static_cast<int>(getpid() % count);
  for (int i = 0; i < count; ++i) {
    Socket listener = ListenOn(ports.first + (begin + i) % count, error);
    if (listener) return listener;
    if (error != EADDRINUSE && error != EACCES) break;
  }
  if (ports.first != 0 && (error == EADDRINUSE || error == EACCES)) {
    throw EngineError(fmt::format(
        "no port from {} to {} (WARREN_WORKER_PORTS, dmlc-submit --worker-ports) is free on this host to listen for other "
        "ranks: {}; each worker of a host needs one, and another one for each communicator that it makes across hosts",
        ports.first, ports.last, ErrorText(error)));
  }
  const std::string doing = "no port can be opened to listen for other ranks";
  ThrowIfShortage(doing, "socket, bind or listen", error);
  throw EngineError(fmt::format("{}: {}", doing, ErrorText(error)));
}

// --- failures ----------------------------------------------------------------------------------------------

void ConnectFailures::Add(const Address& address, int error, const std::string& why) {
  failures_.push_back({address, error, why});
}

int ConnectFailures::OwnShortage(const std::vector<std::string>& own_hosts) const {
  int refused_here = 0;  // errno of this host's refusal to connect to itself; 0 if none
  int refused_away = 0;  // errno of this host's refusal to connect to another host; 0 if none
  bool failed_here = false;
  bool failed_away = false;
  for (const Failure& failure : failures_) {
    const bool is_here =
        std::find(own_hosts.begin(), own_hosts.end(), failure.address.host()) != own_hosts.end();
    if (!posix::IsLocalShortage(failure.error)) {
      (is_here ? failed_here : failed_away) = true;
    } else if (!posix::ConcernsAddress(failure.error)) {
      return failure.error;
    } else if (failure.error == EACCES && failure.address.family() == AF_INET6) {
      failed_away = true;  // a router may cause it too (ICMPv6, "administratively prohibited")
    } else {
      (is_here ? refused_here : refused_away) = failure.error;
    }
  }
  if (failed_away) return 0;
  if (refused_away != 0) return refused_away;
  return failed_here ? 0 : refused_here;
}

std::string ConnectFailures::Text() const {
  std::string text;
  for (const Failure& failure : failures_) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", failure.address.ToString(), failure.why);
  }
  return text;
}

std::vector<std::string> ListenAddresses(int listener, const std::string& first_host) {
  const Address local = Address::Local(listener);
  std::vector<Address> found;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* entry = interfaces; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
      const int family = entry->ifa_addr->sa_family;
      if (family != AF_INET && (family != AF_INET6 || local.family() != AF_INET6)) continue;
      Address address(entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      if (IsLinkLocal(address)) continue;
      address.set_port(local.port());
      found.push_back(address);
    }
    freeifaddrs(interfaces);
  } else if (const int error = errno; posix::IsLocalShortage(error) && !posix::ConcernsAddress(error)) {
    ThrowShortage("the addresses of this host cannot be listed for other ranks", "getifaddrs", error);
  }
  const auto order = [&](const Address& address) {
    const std::string host = address.host();
    if (host == first_host) return 0;
    return host == "::1" || host.starts_with("127.") ? 2 : 1;
  };
  std::ranges::stable_sort(found, {}, order);
  std::vector<std::string> texts;
  texts.reserve(found.size());
  for (const Address& address : found) texts.push_back(address.ToString());
  return texts;
}

bool StaysHere(int fd) {
  const Address remote = Address::Remote(fd);
  return remote.port() != 0 && remote.host() == Address::Local(fd).host();
}

void PrepareLink(int fd, bool no_delay, std::chrono::seconds host_timeout) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, fcntl(fd, F_GETFD) | FD_CLOEXEC);
  if (no_delay) SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  const int seconds = static_cast<int>(host_timeout.count());
  SetOption(fd, IPPROTO_TCP, posix::kKeepIdle, std::clamp(seconds / 3, 1, posix::kMostKeepAliveSeconds));
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::clamp(seconds / 6, 1, posix::kMostKeepAliveSeconds));
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
#ifdef TCP_CONGESTION
  if (StaysHere(fd)) {
    static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kPlainCongestionControl,
                                 sizeof kPlainCongestionControl - 1));
  }
#endif
}

void SetUserTimeout(int fd, std::chrono::seconds timeout) {
  posix::SetUserTimeout(fd, static_cast<int>(timeout.count()));
}

int PollUntil(std::span<pollfd> waits, std::chrono::steady_clock::time_point deadline) {
  constexpr int kLongest_ms = 3'600'000;
  const int count =
      poll(waits.data(), static_cast<nfds_t>(waits.size()), MillisecondsUntil(deadline, kLongest_ms));
  if (count < 0 && errno != EINTR) throw EngineError("poll failed: " + ErrorText(errno));
  return std::max(count, 0);
}

bool WaitFor(int fd, short events, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    if (PollUntil({&entry, 1}, deadline) > 0) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
  }
}

int MillisecondsUntil(std::chrono::steady_clock::time_point deadline, int limit_ms) {
  const auto now = std::chrono::steady_clock::now();
  if (deadline <= now) return 0;
  if (deadline - now >= std::chrono::milliseconds(limit_ms)) return limit_ms;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count());
}

std::string ErrorText(int error) {
  return std::generic_category().message(error);
}

}  // namespace warren::tcp
