#include "tracker/socket_owner.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

#include "posix/descriptor.h"

#if defined(__linux__) && !defined(WARREN_PORTABLE)
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#define WARREN_HAS_SOCK_DIAG
#endif

namespace warren::tracker {
namespace {

namespace ip = boost::asio::ip;

/// Positions of the fields after the two addresses in a line of the table, counted from 0; `man 5 proc`
/// describes the line.
constexpr std::size_t kUser = 4;
constexpr std::size_t kInode = 6;

struct Owner {
  unsigned user = 0;
  unsigned long inode = 0;

  /// The user; nullopt if no process holds the socket, in which case the kernel reports user 0.
  std::optional<unsigned> Found() const { return inode == 0 ? std::nullopt : std::optional(user); }
};

/// The endpoint in the table's notation: 32-bit numbers in the machine's byte order, then the port, all in
/// hexadecimal. `mapped`: whether an IPv4 address is written as mapped to IPv6.
std::string InTable(const ip::tcp::endpoint& endpoint, bool mapped) {
  std::string text = mapped ? "0000000000000000FFFF0000" : "";
  const auto add = [&](const auto& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      text += fmt::format("{:08X}", word);
    }
  };
  const ip::address address = PlainAddress(endpoint.address());
  if (address.is_v4()) {
    add(address.to_v4().to_bytes());
  } else {
    add(address.to_v6().to_bytes());
  }
  return fmt::format("{}:{:04X}", text, endpoint.port());
}

#ifdef WARREN_HAS_SOCK_DIAG
void Store(const ip::tcp::endpoint& endpoint, std::uint16_t& port, std::uint32_t (&words)[4]) {
  port = htons(endpoint.port());
  const ip::address address = PlainAddress(endpoint.address());
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    std::memcpy(words, bytes.data(), bytes.size());
  } else {
    const auto bytes = address.to_v6().to_bytes();
    std::memcpy(words, bytes.data(), bytes.size());
  }
}

/// Queries the kernel for the peer's socket of this connection (`man 7 sock_diag`). Returns an owner without
/// an inode if there is no such socket, and std::nullopt if the query fails.
std::optional<Owner> AskKernel(const ip::tcp::endpoint& peer, const ip::tcp::endpoint& own) {
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 request{};
  } message;
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST;
  message.request.sdiag_family = PlainAddress(peer.address()).is_v4() ? AF_INET : AF_INET6;
  message.request.sdiag_protocol = IPPROTO_TCP;
  message.request.idiag_states = ~0U;
  Store(peer, message.request.id.idiag_sport, message.request.id.idiag_src);
  Store(own, message.request.id.idiag_dport, message.request.id.idiag_dst);
  message.request.id.idiag_cookie[0] = message.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const posix::Descriptor socket(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (!socket) return std::nullopt;
  if (send(socket.get(), &message, sizeof message, 0) != sizeof message) return std::nullopt;
  // The kernel has answered when `send` returns.
  alignas(nlmsghdr) std::array<char, 8192> answer{};
  const ssize_t count = recv(socket.get(), answer.data(), answer.size(), 0);
  nlmsghdr header{};
  inet_diag_msg found{};
  if (count < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof(nlmsgerr))) return std::nullopt;
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr failure{};
    std::memcpy(&failure, answer.data() + NLMSG_HDRLEN, sizeof failure);
    return failure.error == -ENOENT ? std::optional(Owner{}) : std::nullopt;
  }
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  if (count < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof found)) return std::nullopt;
  std::memcpy(&found, answer.data() + NLMSG_HDRLEN, sizeof found);
  return Owner{found.idiag_uid, found.idiag_inode};
}
#else
std::optional<Owner> AskKernel(const ip::tcp::endpoint& /*peer*/, const ip::tcp::endpoint& /*own*/) {
  return std::nullopt;
}
#endif

}  // namespace

ip::address PlainAddress(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  return address;
}

std::optional<unsigned> OwnerInTable(std::string_view table, const ip::tcp::endpoint& peer,
                                     const ip::tcp::endpoint& own) {
  for (const bool mapped : {false, true}) {
    if (mapped && PlainAddress(peer.address()).is_v6()) break;
    const std::string ends = fmt::format(" {} {} ", InTable(peer, mapped), InTable(own, mapped));
    const std::size_t at = table.find(ends);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = table.substr(at + ends.size());
    std::istringstream words(std::string(rest.substr(0, rest.find('\n'))));
    const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    if (fields.size() <= kInode) return std::nullopt;
    Owner owner;
    if (!(std::istringstream(fields[kUser]) >> owner.user)) return std::nullopt;
    if (!(std::istringstream(fields[kInode]) >> owner.inode)) return std::nullopt;
    return owner.Found();
  }
  return std::nullopt;
}

std::optional<unsigned> OwnerOfPeer(const ip::tcp::endpoint& peer, const ip::tcp::endpoint& own) {
  const ip::address there = PlainAddress(peer.address());
  const ip::address here = PlainAddress(own.address());
  if (there != here && !(there.is_loopback() && here.is_loopback())) return std::nullopt;
  if (const auto owner = AskKernel(peer, own)) return owner->Found();
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(path);
    const std::string table{std::istreambuf_iterator<char>(file), {}};
    if (const auto owner = OwnerInTable(table, peer, own)) return owner;
  }
  return std::nullopt;
}

}  // namespace warren::tracker
