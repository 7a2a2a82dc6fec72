#include "rabit_engine/host/descriptor_passing.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

namespace warren {
namespace {

/// The first word of each message. Its last digits are the version of the segment's layout: ranks whose
/// builds use different layouts share no memory.
constexpr std::uint64_t kMagic = 0x5741'5252'454e'0008;  // "WARREN", layout 8

struct Greeting {
  std::uint64_t magic = kMagic;
  std::int32_t rank = -1;
  std::int32_t num_descriptors = 0;
  std::uint64_t cache_bytes = 0;
  std::uint64_t is_crowded = 0;
};

/// The maximum number of descriptors in one message; the kernel accepts at most 253.
constexpr std::size_t kDescriptorsPerMessage = 128;

void SetTimeouts(int socket) {
  const timeval limit{kPassingTimeoutMs / 1000, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

struct AbstractAddress {
  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    // The name begins with NUL, so it exists only in the kernel, within this network namespace. Another rank
    // may have sent a name that is too long; such a name is truncated, and no process listens on it.
    const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t bytes = 0;
};

bool IsOwnUser(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

}  // namespace

CloseOnForkDescriptor OpenLocalSocket() {
  return CloseOnForkDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

bool BindLocally(int socket, const std::string& name) {
  const AbstractAddress address(name);
  return bind(socket, address.get(), address.bytes) == 0;
}

bool ConnectLocally(int socket, const std::string& name) {
  const AbstractAddress address(name);
  SetTimeouts(socket);
  return connect(socket, address.get(), address.bytes) == 0 && IsOwnUser(socket);
}

CloseOnForkDescriptor AcceptLocally(int listener) {
  CloseOnForkDescriptor socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return socket;
  if (!IsOwnUser(socket.fd())) {
    errno = EAGAIN;
    return {};
  }
  SetTimeouts(socket.fd());
  return socket;
}

bool SendDescriptors(int socket, int rank, std::span<const int> descriptors, const HostCores& cores) {
  Greeting greeting{.rank = rank,
                    .num_descriptors = static_cast<std::int32_t>(descriptors.size()),
                    .cache_bytes = cores.cache_bytes,
                    .is_crowded = cores.is_crowded ? 1U : 0U};
  std::size_t sent = 0;
  do {
    const std::size_t now = std::min(kDescriptorsPerMessage, descriptors.size() - sent);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))> control{};
    iovec data{&greeting, sizeof(greeting)};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (now > 0) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(now * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(now * sizeof(int));
      std::memcpy(CMSG_DATA(header), descriptors.data() + sent, now * sizeof(int));
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPassingTimeoutMs);
    ssize_t taken = -1;
    while ((taken = sendmsg(socket, &message, MSG_NOSIGNAL)) < 0) {
      // The number of a user's descriptors in transit is limited (ulimit -n): wait until other processes have
      // received theirs.
      if (errno != EINTR && errno != ETOOMANYREFS) return false;
      if (std::chrono::steady_clock::now() >= end) return false;
      if (errno == ETOOMANYREFS) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    if (taken != static_cast<ssize_t>(sizeof(greeting))) return false;
    sent += now;
  } while (sent < descriptors.size());
  return true;
}

std::optional<PassedDescriptors> ReceiveDescriptors(int socket) {
  Greeting greeting;
  std::vector<CloseOnForkDescriptor> descriptors;
  do {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))> control{};
    iovec data{&greeting, sizeof(greeting)};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = -1;
    do {
      got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); got >= 0 && header;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        descriptors.emplace_back(fd);
      }
    }
    if (got != static_cast<ssize_t>(sizeof(greeting)) || greeting.magic != kMagic) return std::nullopt;
    if (greeting.num_descriptors < 0 || (message.msg_flags & MSG_CTRUNC) != 0) return std::nullopt;
  } while (descriptors.size() < static_cast<std::size_t>(greeting.num_descriptors));
  if (descriptors.size() != static_cast<std::size_t>(greeting.num_descriptors)) return std::nullopt;
  const HostCores cores{greeting.cache_bytes, greeting.is_crowded != 0};
  return PassedDescriptors{greeting.rank, cores, std::move(descriptors)};
}

}  // namespace warren
